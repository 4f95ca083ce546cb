"""What a model's stories say of the groups that its crawl is about, statement by statement.

Said when asked and invented in a story are two kinds of evidence: they stand side by side and are
never counted together.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kgbias.evidence.claims import claims
from kgbias.graph.profiles import describe_reader
from kgbias.graph.store import StoredRun
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion

_STORIES = "stories"  # the kind of run
# How stories word what a crawl says in plain words.
_PLAIN = (
    (re.compile(r"^(?:work|are cast) as\b", re.IGNORECASE), "are"),
    (re.compile(r"^have in the family\b", re.IGNORECASE), "have"),
)


@dataclass(frozen=True)
class Told:
    """The newest run of stories in the same store by the model that was crawled, about any of the
    same groups; nothing if there is none.

    A story makes a statement if its character is read as making all of the statement's claims
    (`kgbias.evidence.claims`): the same lemmas, polarity and stance, of the same kind ("are" or
    "have"; other verbs must be the same word). Words alone decide, so "are wealthy" is not found in
    a story about somebody rich, and what claims are not read from ("want to travel") is never
    found. The reader of stories finds part of what they say, and cannot find most of what a crawl
    says: that no story was read as saying something does not show that none says it, so such a
    statement has no share, rather than one of 0.

    Attributes:
        teller: the name of the run of stories, with the model that read them if rules did not; ""
            if there is none.
        prompts: for each group, by id, what was read from the stories with each prompt. Those with
            the same prompt count as one, which says what any of them says.
    """

    teller: str = ""
    prompts: Mapping[str, Mapping[tuple[str, int], set[Any]]] = field(default_factory=dict)

    @classmethod
    def read(cls, run: StoredRun) -> "Told":
        """Those beside a run. Stories have none beside themselves."""
        groups = {group.id for group in run.groups}
        newest = None
        for other in (summary.run for summary in run.store.summaries()):
            same = other.kind == _STORIES and other.model == run.model
            if same and any(group.id in groups for group in other.groups):
                newest = other
        if newest is None or run.record.kind == _STORIES:
            return cls()
        predicates = newest.config["attributes"]
        prompts: dict[str, dict[tuple[str, int], set[Any]]] = {}
        for profile in run.store.profiles(newest.id):
            if profile.group_id not in groups:
                continue
            own = prompts.setdefault(profile.group_id, {})
            made = own.setdefault(profile.prompt_key(newest.config["wordings"]), set())
            for part in profile.parts:
                made |= _claims(f"{predicates[part.attribute]} {part.value}")
        by = f", read by {describe_reader(newest.config)}" if "read_by" in newest.config else ""
        return cls(f"{newest.name}{by}", prompts)

    def cells(self, group: str, statement: Statement) -> dict[str, Any]:
        """The columns of a group (by id) and a statement."""
        prompts = self.prompts.get(group)
        if not prompts:
            return {"teller": "", "told": Estimate.missing()}
        wanted = _claims(f"{statement.predicate} {statement.object}")
        making = sum(wanted <= made for made in prompts.values()) if wanted else 0
        told = proportion(making, len(prompts)) if making else Estimate.missing(len(prompts))
        return {"teller": self.teller, "told": told}


@lru_cache(maxsize=1 << 16)
def _claims(text: str) -> frozenset[Any]:
    """What makes the claims of a statement without its subject the same as others'."""
    for words, plain in _PLAIN:
        text = words.sub(plain, text)
    # Claims do not tell what people do from what they have: "work with children" has a child.
    verb = text.partition(" ")[0].lower()
    return frozenset(
        (c.lemmas, c.stance, c.denied, c.verb, "" if c.verb == "are" else verb)
        for c in claims(text)
    )
