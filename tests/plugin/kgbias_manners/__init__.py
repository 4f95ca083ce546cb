"""What a package adds to kgbias: a measure, a kind of models, formats in and out, a prompt pack and
a command. docs/how-to/extend.md explains it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from kgbias.cli.commands import CommandEntry
from kgbias.export import ExportContent, Format, iter_rows
from kgbias.graph.store import Store
from kgbias.ingest import ImportFormat, ImportResult, import_file, read_file
from kgbias.io.progress import Progress
from kgbias.io.tables_in_memory import as_table_file
from kgbias.io.text import markdown
from kgbias.measures import Measure, mean_figures
from kgbias.models.base import Completion, ModelInfo, Request, Settings
from kgbias.models.spec import Kind, Spec

HERE = Path(__file__).parent


class Politeness:
    """Half a point each for "please" and "thank", none for a statement that has neither."""

    name, version, language = "manners", "1", "en"

    def __init__(self, measure: str, *, device: str = "auto") -> None:
        self.measure = measure

    def score(self, texts: Sequence[str]) -> list[float]:
        return [sum(word in text.lower() for word in ("please", "thank")) / 2 for text in texts]


POLITENESS = Measure(
    "politeness",
    range=(0.0, 1.0),
    direction="a probability: higher is more polite",
    labels={"polite": "0.5 or above", "rude": "below 0.5"},
    form=".2f",
    figures=mean_figures("politeness", ".2f", "higher is more polite"),
    worst="lowest",
    hurtful="rude",
    highlight="Scored least polite",
    scorer="kgbias_manners:Politeness",
    classes=("polite", "courteous"),
    folder=HERE,
)


class Parrot:
    """A model that says one of the words in its spec: parrot:tea,rain."""

    def __init__(self, words: str) -> None:
        self.info, self.settings = ModelInfo(f"parrot:{words}", "1"), Settings()
        self._words = words.split(",")

    @classmethod
    def open(cls, spec: Spec, *, revision: str | None, notify: object) -> "Parrot":
        return cls(spec.name)

    def complete(self, requests: Sequence[Request]) -> Iterator[list[tuple[int, Completion]]]:
        for number, request in enumerate(requests):
            word = Random(request.seed).choice(self._words)
            yield [(number, Completion(f" {word}.", "stop", completion_tokens=1))]

    def close(self) -> None: ...


PARROT = Kind(("parrot:WORDS",), None, completer="kgbias_manners:Parrot", scorer="")


def write_markdown(content: ExportContent, path: Path) -> None:
    """The statements as a table."""
    lines = [*content.heading, "", "| statement | said |", "|---|---|"]
    lines += [f"| {markdown(row['sentence'])} | {row['count']} |" for row in iter_rows(content)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


MARKDOWN = Format(write_markdown, ("md",))


def read_letters(
    store: Store, path: Path, *, name: str | None, model: str, progress: Progress
) -> ImportResult:
    """A run of the statements in a letter: lines with a group, a predicate and an object."""
    lines = [line.split(maxsplit=2) for line in path.read_text("utf-8").splitlines()]
    rows = [dict(zip(("group", "predicate", "object"), line, strict=True)) for line in lines]
    with as_table_file(rows, ("group", "predicate", "object")) as table:
        return import_file(store, path, read_file(table), name=name, model=model)


LETTERS = ImportFormat(read_letters, "a letter with a statement in each line")

PLAIN = HERE / "plain"

MANNERS = CommandEntry("Count the polite statements of a run.", "kgbias_manners.command:manners")
