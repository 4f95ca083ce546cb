"""Templates of strangers, rendered in a separate process."""

import os

import pytest

from kgbias.errors import DataError
from kgbias.io import templates
from kgbias.io.sandbox import TemplateSandbox
from kgbias.io.templates import render_template

pytestmark = pytest.mark.integration

GREEDY = {
    "nested ranges": "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}"
    "{% endfor %}",
    "lipsum": "{{ lipsum(n=100000) }}",
    "wordwrap": "{{ group | wordwrap(1) }}",
    "a product": "{{ 'a' * 3000000000 }}",
    "a format": "{{ '%2000000000d' | format(1) }}",
    "a format of old": "{{ '%2000000000d' % 1 }}",
    "a power": "{{ 9 ** 9 ** 9 }}",
    "doublings": "{% set a = 'ab' %}" + "{% set a = a ~ a %}" * 33 + "{{ a }}",
    "doublings in a loop": "{% set ns = namespace(a='a') %}{% for c in group %}"
    "{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
    "a macro": "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
    "a method": "{{ 'a'.ljust(3000000000) }}",
    "a filter with room": "{{ group | center(3000000000) }}",
    "a loop in itself": "{% for a in examples recursive %}{{ loop(examples) }}{% endfor %}",
    "another file": "{% include 'pack.toml' %}",
    "a join in a join": "{{ " + "group | join(" * 14 + "group" + ")" * 14 + " }}",
    "joins of letters": "{{ group" + " | join('abcd')" * 14 + " }}",
    "lists as texts": "{{ group" + " | list | lower" * 14 + " }}",
    "escapes of escapes": "{{ " + "[" * 40 + "'\\\\'" + "] ~ ''" * 40 + " }}",
    "loops in loops": "{% for a in group %}" * 12 + "x" + "{% endfor %}" * 12,
    "a function of Jinja": "{{ lipsum }}",
    "deep brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "deep blocks": "{% if group %}" * 200 + "{% endif %}" * 200,
}


@pytest.mark.parametrize("name", GREEDY)
def test_a_template_takes_no_more_than_its_size(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these took gigabytes, or did not end, when a pack was only priced."""
    monkeypatch.setattr(templates, "_sandbox", TemplateSandbox("kgbias.io.template_process", 1))
    values = {"group": "Women" * 20, "examples": ["a", "b"]}
    with pytest.raises(DataError, match="cannot be rendered"):
        render_template(GREEDY[name], values)
    assert render_template("{{ group }}", {"group": "Men"}) == "Men"  # and the next one is


def test_a_process_that_does_not_start_says_why() -> None:
    with pytest.raises(DataError, match=r"x cannot be .* No module named kgbias\.nowhere"):
        TemplateSandbox("kgbias.nowhere").render({}, DataError, "x")


def test_a_process_that_was_forked_does_not_read_its_parents_replies() -> None:
    assert render_template("{{ group }}", {"group": "Men"}) == "Men"
    child = os.fork()
    if child == 0:
        wrong = any(render_template("{{ group }}", {"group": str(n)}) != str(n) for n in range(50))
        os._exit(wrong)
    right = all(render_template("{{ group }}", {"group": f"a{n}"}) == f"a{n}" for n in range(50))
    assert os.waitpid(child, 0)[1] == 0 and right
