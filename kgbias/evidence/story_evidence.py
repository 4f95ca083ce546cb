"""What a model's stories say of the groups that its crawl is about, statement by statement.

Said when asked and invented in a story are two kinds of evidence: they stand side by side and are
never counted together.

What stories say is read from the store, in the profiles of the same model's stories: nothing here
knows `kgbias.methods.stories`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kgbias.evidence.claims import extract_claims
from kgbias.graph.profiles import describe_reader
from kgbias.graph.store import StoredRun
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion

_STORIES_KIND = "stories"  # the kind of run
# How stories word what a crawl says in plain words.
_STORY_TO_PLAIN_WORDING = (
    (re.compile(r"^(?:work|are cast) as\b", re.IGNORECASE), "are"),
    (re.compile(r"^have in the family\b", re.IGNORECASE), "have"),
)


@dataclass(frozen=True)
class StoryEvidence:
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
        story_run: the name of the run of stories, with the model that read them if rules did not;
            "" if there is none.
        claims_by_prompt: for each group, by id, what was read from the stories with each prompt.
            Those with the same prompt count as one, which says what any of them says.
    """

    story_run: str = ""
    claims_by_prompt: Mapping[str, Mapping[tuple[str, int], set[Any]]] = field(default_factory=dict)

    @classmethod
    def read(cls, run: StoredRun) -> "StoryEvidence":
        """Those beside a run. Stories have none beside themselves."""
        groups = {group.id for group in run.groups}
        newest_run = None
        for candidate in run.store.runs():
            same_model = candidate.kind == _STORIES_KIND and candidate.model == run.model
            if same_model and any(group.id in groups for group in candidate.groups):
                newest_run = candidate
        if newest_run is None or run.record.kind == _STORIES_KIND:
            return cls()
        predicates = newest_run.config["attributes"]
        prompts: dict[str, dict[tuple[str, int], set[Any]]] = {}
        for profile in run.store.profiles(newest_run.id):
            if profile.group_id not in groups:
                continue
            group_prompts = prompts.setdefault(profile.group_id, {})
            prompt_claims = group_prompts.setdefault(
                profile.prompt_key(newest_run.config["wordings"]), set()
            )
            for part in profile.parts:
                prompt_claims |= _claim_keys(f"{predicates[part.attribute]} {part.value}")
        reader = (
            f", read by {describe_reader(newest_run.config)}"
            if "read_by" in newest_run.config
            else ""
        )
        return cls(f"{newest_run.name}{reader}", prompts)

    def has_told_of(self, group: str) -> bool:
        """Whether there are stories about a group (by id)."""
        return bool(self.claims_by_prompt.get(group))

    def find_share(self, group: str, statement: Statement) -> Estimate:
        """The share of prompts for stories about a group (by id) that make a statement; missing
        where no story was read as making it."""
        prompts = self.claims_by_prompt.get(group, {})
        wanted_claims = _claim_keys(f"{statement.predicate} {statement.object}")
        matching_count = 0
        if wanted_claims:
            matching_count = sum(
                wanted_claims <= prompt_claims for prompt_claims in prompts.values()
            )
        if not matching_count:
            return Estimate.missing(len(prompts))
        return proportion(matching_count, len(prompts))


@lru_cache(maxsize=1 << 16)
def _claim_keys(text: str) -> frozenset[Any]:
    """What makes the claims of a statement without its subject the same as others'."""
    for words, plain in _STORY_TO_PLAIN_WORDING:
        text = words.sub(plain, text)
    # Claims do not tell what people do from what they have: "work with children" has a child.
    verb = text.partition(" ")[0].lower()
    return frozenset(
        (c.lemmas, c.stance, c.is_negated, c.verb, "" if c.verb == "are" else verb)
        for c in extract_claims(text)
    )
