import pytest

from kgbias.crawl.crawler import describe_malformed
from tests.texts import Texts


def test_nothing_is_said_where_most_answers_are_well_formed_or_few_were_read() -> None:
    for outcomes in ({}, {"unparsable": 19}, {"ok": 10, "unparsable": 10}, {"ok": 100}):
        assert describe_malformed(outcomes, {}, form="chat") is None
    # Echoes are well-formed; refusals and failures are another matter.
    assert describe_malformed({"echo": 30, "unparsable": 20}, {}, form="chat") is None
    assert describe_malformed({"refused": 90, "failed": 9, "ok": 1}, {}, form="chat") is None


@pytest.mark.parametrize(
    ("form", "structured", "prompts", "remedies"),
    [
        ("chat", False, "sentences", ("structured=True", 'form="completion"')),
        ("chat", True, "sentences", ('form="completion"',)),
        ("completion", False, "sentences", ('form="chat"',)),
        ("completion", False, "salinas-2023", ('form="chat"', 'prompts="sentences"')),
        ("chat", True, "salinas-2023", ('form="completion"', 'prompts="sentences"')),
    ],
)
def test_the_line_says_how_few_why_and_what_to_try(
    form: str, structured: bool, prompts: str, remedies: tuple[str, ...], texts: Texts
) -> None:
    line = describe_malformed(
        {"ok": 8, "echo": 4, "refused": 70, "unparsable": 28},
        {"unfinished": 4, "about others": 24},
        form=form,  # type: ignore[arg-type]
        structured=structured,
        prompts=prompts,
    )
    assert line is not None and "\n" not in line
    texts.check(line)
    every = ("structured=True", 'form="completion"', 'form="chat"', 'prompts="sentences"')
    assert tuple(remedy for remedy in every if remedy in line) == tuple(
        remedy for remedy in every if remedy in remedies
    )
