"""Rows on a second, invented language of the reference world: its answers are read, what is
believed in both languages is found in both, and a difference of two languages is found where one is
planted and hardly elsewhere.

A crawl in the second language is one of the reference model through a dictionary
(`kgbias.reference.second_language`). For beliefs each language has names of its own, as any two
have: English those of a group's first root, the second language those of its second. What the
model finds probable of these in translation is what it finds probable of them.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import cache
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from kgbias.calibrate.belief_rows import ProbedCategory, probe_categories
from kgbias.calibrate.calibration_rows import Calibration, RowFunction, RowResult
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.crawl.seeds import known_seeds
from kgbias.evidence.language_pairs import welch_differences
from kgbias.graph.store import StoredRun
from kgbias.graph.stores import open_store
from kgbias.io.progress import SilentProgress
from kgbias.models import open_model
from kgbias.models.base import Completer, Completion, ModelInfo, Request, Settings
from kgbias.packs import load_pack
from kgbias.probe.belief import BELIEVED, SIGNIFICANCE_LEVEL, BeliefTest, Flags
from kgbias.reference.second_language import (
    LANGUAGE_CODE,
    PACK_FOLDER,
    to_english,
    to_second_language,
)
from kgbias.reference.world import Truth
from kgbias.stats.inference import Estimate, proportion

MIN_LIFT_BITS = 2.0  # of a planted lift: the four names of a root are enough to find it
MIN_DIFFERENCE_BITS = 3.0  # between the planted lifts of two groups


class SecondLanguageModel:
    """A model of English, asked in the second language."""

    def __init__(self, model: Completer) -> None:
        self._model = model
        self.info: ModelInfo = model.info
        self.settings: Settings = (*model.settings, ("language", LANGUAGE_CODE))

    def complete(
        self, requests: Sequence[Request]
    ) -> Generator[list[tuple[int, Completion]], None, None]:
        """Answer prompts that are texts to complete."""
        english = [replace(r, prompt=to_english(str(r.prompt))) for r in requests]
        for batch in self._model.complete(english):
            yield [
                (place, replace(answer, text=to_second_language(answer.text)))
                for place, answer in batch
            ]

    def close(self) -> None:
        self._model.close()


def build_language_rows() -> tuple[RowFunction, ...]:
    return (
        second_language_read,
        second_language_beliefs,
        false_language_differences,
        language_differences,
    )


@cache
def _measure_read_share(truth: Truth, categories: tuple[str, ...]) -> Estimate:
    """Of the answers of a crawl in the second language that are no refusals, the share that is read
    as a statement of the world."""
    pack = load_pack(str(PACK_FOLDER))
    seeds = known_seeds("reference", pack.groups)
    config = CrawlConfig(
        seeds=tuple(seeds[name] for name in categories),
        pack=pack,
        initial_predicates=tuple(pack.crawl["initial_predicates"]),
        samples=1,
        iterations=1,
    )
    with TemporaryDirectory(prefix="kgbias-") as folder, open_store(f"{folder}/w.db") as store:
        model = SecondLanguageModel(open_model("reference"))
        run = StoredRun(store, crawl(config, model, store, progress=SilentProgress()).run)
        read = answered = 0
        for generation in run.generations():
            if generation.outcome == "refused":
                continue
            answered += generation.count
            triple = generation.triple
            if triple is not None:
                words = to_english(triple.predicate), to_english(triple.object)
                read += generation.count * (truth.find_statement(*words) is not None)
    return proportion(read, answered)


def second_language_read(calibration: Calibration) -> RowResult:
    """The share of answers in the second language, apart from refusals, that are read as a
    statement of the world once they are translated back."""
    categories = tuple(dict.fromkeys(group.category for group in calibration.run.groups))
    share = _measure_read_share(calibration.truth, categories)
    return RowResult(
        "second_language_read", "read in a second language", ">= 0.9", share, of_model=True
    )


class _LanguageTests(NamedTuple):
    """The test of a category in English, and in the second language."""

    english: BeliefTest
    second: BeliefTest


def _test_languages(category: ProbedCategory) -> _LanguageTests:
    """English has the names of a group's first root, the second language those of its second."""
    roots = [name.root for name in category.probed_names]
    sides = []
    for wanted in (0, 1):
        kept = []
        for group in range(len(category.groups)):
            places = [n for n, g in enumerate(category.group_indices) if g == group]
            root = list(dict.fromkeys(roots[n] for n in places))[wanted]
            kept += [n for n in places if roots[n] == root]
        sides.append(category.test_names(np.array(kept)))
    return _LanguageTests(*sides)


def _unplanted_cells(category: ProbedCategory) -> Flags:
    """Where nothing is planted on a name or a root: a group and a statement are there the same in
    both languages."""
    of_names = category.planted_cells(category.names.name_associations)
    of_roots = category.planted_cells(category.names.root_associations)
    return ~(of_names | of_roots)


def second_language_beliefs(calibration: Calibration) -> RowResult:
    """The share of clear planted lifts that are called believed in both languages, by the names of
    either root."""
    found = tried = 0
    for category in probe_categories(calibration):
        english, second = _test_languages(category)
        clear = (category.lifts >= MIN_LIFT_BITS) & _unplanted_cells(category)
        both = (english.verdicts == BELIEVED) & (second.verdicts == BELIEVED)
        found += int((both & clear).sum())
        tried += int(clear.sum())
    return RowResult(
        "second_language_beliefs",
        f"beliefs of over {MIN_LIFT_BITS:.0f} bits found in both languages",
        "",
        proportion(found, tried),
        of_model=True,
    )


def false_language_differences(calibration: Calibration) -> RowResult:
    """The share of pairs of a group and a statement, with nothing planted on a name or root, whose
    lifts are said to differ between the languages."""
    differing = tried = 0
    for category in probe_categories(calibration):
        q_values = welch_differences(*_test_languages(category)).q_values
        unplanted = _unplanted_cells(category)
        differing += int(((q_values <= SIGNIFICANCE_LEVEL) & unplanted).sum())
        tried += int(unplanted.sum())
    return RowResult(
        "false_language_differences",
        "differences of languages where none is planted",
        "<= 0.05",
        proportion(differing, tried),
        of_model=True,
    )


def language_differences(calibration: Calibration) -> RowResult:
    """In the second language each group is called by the names of the next one. The share of pairs
    whose planted lifts then differ clearly that are said to differ."""
    found = tried = 0
    for category in probe_categories(calibration):
        english, second = _test_languages(category)
        turned = np.roll(np.arange(len(category.groups)), -1)
        q_values = welch_differences(english, second.of_groups(turned)).q_values
        planted = np.abs(category.lifts - category.lifts[turned]) >= MIN_DIFFERENCE_BITS
        planted &= _unplanted_cells(category) & _unplanted_cells(category)[turned]
        found += int(((q_values <= SIGNIFICANCE_LEVEL) & planted).sum())
        tried += int(planted.sum())
    return RowResult(
        "language_differences",
        f"differences of languages of over {MIN_DIFFERENCE_BITS:.0f} bits found",
        "",
        proportion(found, tried),
        of_model=True,
    )
