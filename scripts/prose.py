"""Words, words a sentence and the share of long sentences of each page, for whoever edits it.

    python scripts/prose.py                      # all pages under docs/, and README.md
    python scripts/prose.py docs/methods/*.md

A sentence is long from 36 words on. *Words* are all of a page, tables too. Sentences are those of
its prose: headings, tables, code, formulas, comments and front matter are left out, and a list item
ends a sentence. The figures decide nothing; a reader does.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_WORDS = 35
MIN_WORDS = 4
"""Less is the bold word that begins a paragraph, or a piece of a citation."""

_LEFT_OUT = re.compile(
    r"\A---\n.*?^---\n"  # front matter
    r"|^ *```.*?^ *```"
    r"|^ *\$\$.*?\$\$"
    r"|<!--.*?-->"
    r"|^ *\|.*?$"
    r"|^#.*?$",
    re.MULTILINE | re.DOTALL,
)
_PARAGRAPH_END = re.compile(r"\n[ >]*\n|\n *(?:[-*]|\d+\.) ")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ONE_WORD = re.compile(r"`[^`]*`|\$[^$]*\$")
_ABBREVIATION = re.compile(r"\b(al|Eq|Eqs|e\.g|i\.e|vs|cf|Fig)\.(?= )")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)*\"”]*\s+(?=[\w`*(\"“$])")
_WORD = re.compile(r"\w")


@dataclass(frozen=True)
class Prose:
    words: int
    sentences: Sequence[int]
    """How many words each has."""

    @property
    def mean(self) -> float:
        return sum(self.sentences) / max(1, len(self.sentences))

    @property
    def long(self) -> float:
        many = sum(n > MAX_WORDS for n in self.sentences)
        return many / max(1, len(self.sentences))

    def __str__(self) -> str:
        return f"{self.words:7,} {len(self.sentences):6,} {self.mean:7.1f} {self.long:7.0%}"


def sentences(page: str) -> Iterator[str]:
    text = _LEFT_OUT.sub("\n\n", page)
    text = _ONE_WORD.sub("code", _LINK.sub(r"\1", text))
    for paragraph in _PARAGRAPH_END.split("\n\n" + text):
        line = _ABBREVIATION.sub(r"\1", " ".join(paragraph.split()))
        yield from (s for s in _SENTENCE_END.split(line) if count_words(s) >= MIN_WORDS)


def count_words(text: str) -> int:
    return sum(bool(_WORD.search(word)) for word in text.split())


def read(page: str) -> Prose:
    return Prose(count_words(page), [count_words(sentence) for sentence in sentences(page)])


def main(paths: Sequence[Path]) -> None:
    pages = {path: read(path.read_text("utf-8")) for path in paths}
    print(f"{'page':34} {'words':>7} {'sent.':>6} {'a sent.':>7} {'over ' + str(MAX_WORDS):>7}")
    for path, prose in pages.items():
        name = path.resolve().relative_to(ROOT.resolve()).as_posix().removeprefix("docs/")
        print(f"{name:34} {prose}")
    every = [n for prose in pages.values() for n in prose.sentences]
    print(f"{'together':34} {Prose(sum(p.words for p in pages.values()), every)}")


if __name__ == "__main__":
    main(
        [Path(name) for name in sys.argv[1:]]
        or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    )
