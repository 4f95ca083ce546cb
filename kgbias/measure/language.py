"""Which language a run is in, and what reads only English."""

from collections.abc import Sequence

from kgbias.errors import UsageError
from kgbias.graph.store import StoredRun
from kgbias.measure.scorers import Scorer

ENGLISH = "en"


def language_of(run: StoredRun) -> str:
    """The language of a run's prompts and answers, as its pack declares it; else English."""
    pack = run.config.get("pack") or {}
    return str(pack.get("language") or ENGLISH)


def require_language(run: StoredRun, scorers: Sequence[Scorer]) -> None:
    """Raise UsageError where a scorer is known to read another language than the run's."""
    language = language_of(run)
    wrong = [s.measure for s in scorers if getattr(s, "language", None) not in (None, language)]
    if wrong:
        raise UsageError(
            f"{run.name} is in the language {language!r}, and the scorers of {', '.join(wrong)} "
            "do not read it: name for each a classifier that does (hf:ID-or-PATH), or none, in "
            "`scorers`, and leave out `axes`"
        )


def require_english(run: StoredRun, what: str) -> None:
    """Raise UsageError where the run is not in English, which `what` needs."""
    if (language := language_of(run)) != ENGLISH:
        raise UsageError(f"{run.name} is in the language {language!r}: {what} are made for English")
