"""What a prompt asked, and how an answer that was rejected can be read: what a person who reviews
a run is shown."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kgbias.crawl.parse import read_answer
from kgbias.crawl.structured import as_text

# What the forms of prompts put around a predicate: "Men # love", "A:", "Men love ...".
_AROUND = re.compile(r"^\s*#?\s*|\s*(?:\nA:|\.\.\.)\s*$")


def asked(prompt: str, names: Iterable[str]) -> tuple[str, str]:
    """What a prompt calls the group, and the predicate that it gives: "" where the model was to
    name it. `names` are the group's; a prompt without any asked nothing ("", "")."""
    found = [
        match for name in names for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", prompt)
    ]
    if not found:
        return "", ""
    last = max(found, key=lambda match: (match.end(), match.end() - match.start()))
    return last[0], " ".join(_AROUND.sub("", prompt[last.end() :]).split())


def reread(text: str, subject: str, predicate: str, config: Mapping[str, Any]) -> tuple[str, str]:
    """The predicate and object that the reader of a run (of this configuration) finds in an answer
    that no filter holds back and no limit cut off; ("", "") where it finds none."""
    said, reader = text, config.get("pack", {}).get("reader", "list").partition("@")[0]
    if config.get("structured"):
        said = as_text(text, names_predicate=not predicate) or text
    reading = read_answer(
        said,
        "stop",
        predicate=predicate or None,
        filters=(),
        subject=subject,
        reader=reader if said == text else "list",
    )
    return (predicate or reading.predicate, reading.object) if reading.object else ("", "")
