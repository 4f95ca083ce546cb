"""What is read of tables and of objects in memory, from what each reader and method declares.

python scripts/doors.py    # prints both tables; the site has them in docs/how-to/data.md
"""

from collections.abc import Iterator
from importlib import import_module
from inspect import getmembers_static, isfunction, signature
from pathlib import Path
from typing import get_type_hints

import kgbias
from kgbias.crawl import seeds
from kgbias.crawl.configure import Groups
from kgbias.io import tables_in_memory
from kgbias.io.tables import TableFormat
from kgbias.io.unsupported_sets import UNSUPPORTED_SETS
from kgbias.measure.configure import MeasureOptions
from kgbias.measure.scorers import _custom as own_scorers
from kgbias.methods import iter_calls
from kgbias.methods.associations import sets as test_sets
from kgbias.models import in_memory, vectors
from kgbias.study.beliefs import RunBeliefs

# What is handed over, how its types begin, and the words of its reader for what it takes.
KINDS = (
    (
        "a model that is asked",
        ("Completer",),
        f"a spec, or an open model; `kgbias.in_memory` opens {in_memory.ACCEPTED_MODEL_FORMS}",
    ),
    (
        "a model whose probabilities or vectors are read",
        ("Model | ", "Models"),
        "a spec, an open scorer, or the first two of these",
    ),
    ("groups", (str(Groups),), f"files (`seeds`), or {seeds.ACCEPTED_GROUP_FORMS}"),
    (
        "a table, or texts",
        ("str | pathlib.Path | kgbias.io.tables_in_memory.Frame",),
        tables_in_memory.ACCEPTED_FORMS,
    ),
    (
        "scorers",
        ("ScorersLike", "ScorerLike", str(get_type_hints(MeasureOptions)["scorers"])),
        f"a spec, a kgbias.Scorer, or {own_scorers.ACCEPTED_FORMS}",
    ),
    ("association tests", ("Tests",), test_sets.FORMS),
    ("word vectors", ("WordVectors",), vectors.FORMS),
)
OBJECTS = {
    "study": kgbias.Study,
    "run": kgbias.Run,
    "run.beliefs": RunBeliefs,
}
NOT_THESE = {("benchmarks.run_benchmarks", "opening")}  # a dict of options
WORD_SETS = TableFormat(
    "word sets: `associate --tests-file`", other_forms="TOML, or sent-bias's JSON"
)


def _find_doors() -> Iterator[TableFormat]:
    """The tables that modules of the core declare, then those of methods."""
    package = Path(kgbias.__file__).parent
    declaring = [
        source.relative_to(package).with_suffix("")
        for source in package.rglob("*.py")
        if "= TableFormat(" in source.read_text("utf-8")
    ]
    for module in sorted(declaring, key=lambda path: (path.parts[0] == "methods", path)):
        declared = vars(import_module(".".join(("kgbias", *module.parts))))
        yield from (value for value in declared.values() if isinstance(value, TableFormat))


DOORS = (*dict.fromkeys(_find_doors()), WORD_SETS)


def table_rows() -> Iterator[str]:
    yield "| what is handed over | columns that it has | that it may have | may also be |"
    yield "|---|---|---|---|"
    for door in DOORS:
        required = ", ".join(" or ".join(f"`{n}`" for n in names) for names in door.needed_columns)
        optional = ", ".join(f"`{name}`" for name in door.optional_columns)
        yield f"| {door.subject} | {required} | {optional} | {door.other_forms} |".replace(
            "|  |", "| |"
        )
    yield ""
    yield "These published sets are known by what is in the file, and refused by name where they do"
    yield "not go:"
    yield ""
    for form in UNSUPPORTED_SETS:
        yield f"- {form.name}: {form.advice}."


def in_python() -> Iterator[str]:
    """The table of what methods take in memory, from their signatures, in the words in which the
    readers refuse what they do not take."""
    yield "| what is handed over | as | to |"
    yield "|---|---|---|"
    for what, marks, forms in KINDS:
        taken: dict[str, list[str]] = {}
        for name, parameter, annotation in _parameters():
            if any(mark in annotation for mark in marks) and (name, parameter) not in NOT_THESE:
                taken.setdefault(name, []).append(f"`{parameter}`")
        doors = "; ".join(f"`{name}`: {', '.join(own)}" for name, own in taken.items())
        yield f"| {what} | {forms} | {doors} |"


def _parameters() -> Iterator[tuple[str, str, str]]:
    """Each parameter of a public method: the method, its name and its annotation."""
    for name, of in OBJECTS.items():
        for method, value in getmembers_static(of, isfunction):
            if method.startswith("_"):
                continue
            for parameter in signature(value).parameters.values():
                yield f"{name}.{method}", parameter.name, str(parameter.annotation)
    for name, function in iter_calls():
        for parameter in signature(function).parameters.values():
            yield name, parameter.name, str(parameter.annotation)


if __name__ == "__main__":
    print("\n".join([*table_rows(), "", *in_python()]))
