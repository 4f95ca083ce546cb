"""Profiles of two given names side by side: one page that works offline."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from kgbias.errors import UsageError
from kgbias.graph.profiles import Profile, attributes_of
from kgbias.graph.store import StoredRun
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_STATEMENT
from kgbias.io import pages
from kgbias.io.files import write_text
from kgbias.io.text import json_in_html
from kgbias.report.style import template

_LONGEST = 300  # characters of a value that are shown


def write_profile_page(
    run: StoredRun,
    profiles: Sequence[Profile],
    path: Path,
    *,
    names: Sequence[str] = (),
    title: str | None = None,
) -> None:
    """Write the page, whole or not at all. Raises UsageError for a name that has no profile, and
    for more than two."""
    there = list(dict.fromkeys(p.name for p in profiles))
    if missing := [name for name in names if name not in there]:
        raise UsageError(f"run {run.name!r} has no profile of the name {missing[0]!r}")
    if len(names) > 2:
        raise UsageError("two names stand side by side: leave the others out of `name`")
    attributes = attributes_of(profiles)
    first = profiles[0]
    other = next((p for p in profiles if p.labels.get("group") != first.labels.get("group")), first)
    begin = [*names, *(n for n in (first.name, other.name, *there) if n not in names)]
    data = {
        "attributes": list(attributes),
        "begin": (begin * 2)[:2],
        "profiles": [_record(p, attributes) for p in profiles],
    }
    script = pages.script(*pages.shared("draw"), template("profiles.js"))
    page = pages.filled(
        template("profiles.html"),
        title=title or f"Profiles of {run.name}",
        model=f"{run.model.name} {run.model.revision}".strip(),
        warning=CONTENT_WARNING,
        statement=SAMPLE_STATEMENT,
        style=pages.style(""),
        data=Markup(json_in_html(data)),
        script=script,
        script_hash=pages.allowed(script),
    )
    write_text(path, page)


def _record(profile: Profile, attributes: Sequence[str]) -> dict[str, Any]:
    return {
        "name": profile.name,
        "group": profile.labels.get("group", ""),
        "values": [[v[:_LONGEST] for v in profile.values(a)] for a in attributes],
    }
