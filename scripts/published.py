"""Published numbers beside what kgbias finds: the tables of docs/methods/published.md.

    python scripts/published.py                # what the repository has the data for: seconds
    python scripts/published.py --data FOLDER  # also what can be had of the authors' files: minutes

FOLDER holds copies of the authors' files under their own names: of GlobalBias
(github.com/groovychoons/GlobalBias) 3_name_groups.csv, 3_llama_3_results.csv and 10a_*_full.csv; of
CrowS-Pairs crows_pairs_anonymized.csv; of Winogender all_sentences.tsv; of BBQ
(github.com/nyu-mll/BBQ) additional_metadata.csv, the questions of data/ and the preds_*.jsonl of
results/UnifiedQA. Prints the tables, and what it could not run.
"""

import argparse
import csv
import gzip
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kgbias
from kgbias.associate import find_tests
from kgbias.associate.result import Statistics
from kgbias.associate.weat import weat
from kgbias.compare.sofa import measure_rank_agreements
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.seeds import choose_seeds
from kgbias.graph.profiles import labels_of
from kgbias.models.vectors import load_vectors
from kgbias.probe.benchmarks import read_bbq, read_crows_pairs, read_winogender
from kgbias.probe.benchmarks.bbq import CONDITIONS
from kgbias.probe.names import flag_apx
from kgbias.probe.sets import TEMPLATES, read_descriptors, read_identities, read_labels, read_names
from kgbias.profiles import LABEL_KINDS
from kgbias.profiles.analysis import encode
from kgbias.profiles.classify import random_splits, run_trials
from kgbias.study.model_tests import read_benchmarks

DATA = Path(__file__).parent.parent / "tests" / "data"


@dataclass(frozen=True)
class Row:
    """A published value and ours, and why they differ where they do."""

    what: str
    published: str
    ours: str
    why: str = ""

    def __str__(self) -> str:
        return f"| {self.what} | {self.published} | {self.ours} | {self.why} |"


def crawl() -> Iterator[Row]:
    """Salinas et al. 2023, section 5.3"""
    config = CrawlConfig(seeds=tuple(choose_seeds("any", ["gender"])))
    n = len(config.groups)
    yield Row(f"triples after all iterations, {n} groups", f"{100 * n} (100 a group)",
              f"{config.place_count}")  # fmt: skip


def globalbias() -> Iterator[Row]:
    """Siddique et al. 2024, Table 2 and section 4.4"""
    names, descriptors = read_names("globalbias"), read_descriptors("globalbias")
    labels = read_labels("globalbias")
    sentences = len(names) * len(descriptors) * len(TEMPLATES)
    labelled = sum(group in labels for _, group in names)
    told = sum(d.label in set(labels.values()) for d in descriptors)
    yield Row("names", "400 unique", f"{len(names)}, {len({n for n, _ in names})} unique",
              "*Wafa* is in the authors' list twice")  # fmt: skip
    yield Row("groups", "40", f"{len({g for _, g in names})}")
    yield Row("descriptors", "730", f"{len(descriptors)}")
    yield Row("sentences", "876,000", f"{sentences:,}")
    yield Row("names of the four ethnicities that people were asked about", "280", f"{labelled}")
    yield Row("descriptors that people said of one of them", "44", f"{told}")
    yield Row("sentences of both", "36,960", f"{labelled * told * len(TEMPLATES):,}")


_SIZES = {"nationality": (224, 4552, 1_024_200), "gender": (115, 3405, 394_980),
          "disability": (55, 572, 31_460), "religion": (14, 2820, 39_480)}  # fmt: skip


def sofa() -> Iterator[Row]:
    """Marchiori Manerba et al. 2023, Tables 1 and 5"""
    identities = read_identities("sofa")
    for category, (groups, statements, probes) in _SIZES.items():
        ours = len(identities[category])
        fewer = "" if ours == groups else "the ported lexicon that kgbias ships has one fewer"
        yield Row(f"identities, {category}", f"{groups}", f"{ours}", fewer)
        product = groups * statements
        printed = (f"the table's {groups} identities times {statements:,} statements; the number "
                   f"printed is {probes // statements} times {statements:,}")  # fmt: skip
        yield Row(f"probes, {category}", f"{probes:,}", f"{product:,}",
                  "" if product == probes else printed)  # fmt: skip
    taus = measure_rank_agreements(read_benchmarks(DATA / "sofa_table_1.csv"))
    published = {("StereoSet", "CrowS-Pairs"): "0.911", ("SoFa", "StereoSet"): "-0.022",
               ("SoFa", "CrowS-Pairs"): "-0.022"}  # fmt: skip
    for pair, value in published.items():
        yield Row(f"Kendall's tau of the ten models by {' and '.join(pair)}", value,
                  f"{taus[pair]:.3f}")  # fmt: skip


_WEAT = (1.54, 1.63, 0.58, 1.24, 0.72, 1.89, 0.97, 1.24, 1.30, -0.08)


def associations() -> Iterator[Row]:
    """Caliskan et al. 2017, on word2vec, as quoted in WEFE's notebook WEAT_experiments"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "word2vec_347x300.txt"
        path.write_bytes(gzip.decompress((DATA / "word2vec_347x300.txt.gz").read_bytes()))
        vectors = load_vectors(path)
        for number, published in enumerate(_WEAT, 1):
            (test,) = find_tests([f"weat{number}"])
            found = weat(test, vectors, Statistics(how="normal"))
            lost = sum(len(use.missing) for use in found.sets.values())
            every = sum(len(use.known) for use in found.sets.values()) + lost
            near = abs(found.effect_size - published) <= 0.005
            yield Row(f"d of {test.name}: {test.title}", f"{published:+.2f}",
                      f"{found.effect_size:+.2f}", "" if near else
                      f"the repository's excerpt of word2vec lacks {lost} of the {every} words"
                      if lost else "not known: no word is missing")  # fmt: skip


def name_list(folder: Path) -> Iterator[Row]:
    """Siddique et al. 2024, section 3.1"""
    with (folder / "3_name_groups.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    of: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        of[row["Cluster"]][row["Group"]] += 1
    lengths = [len(row["firstname"]) for row in rows]
    most = sum(max(c.values()) > c.total() / 2 for c in of.values())
    sizes = sorted(set(Counter(row["Group"] for row in rows).values()))
    yield Row("names per group", "10", " or ".join(map(str, sizes)))
    yield Row("characters of a name", "2 to 14", f"{min(lengths)} to {max(lengths)}")
    yield Row("clusters of which more than half is one group", "all", f"{most} of {len(of)}",
              "of the chosen names alone; some were taken for their probability")  # fmt: skip


def apx_flags(folder: Path) -> Iterator[Row]:
    """Siddique et al. 2024, section 5"""
    found = flag_apx(folder / "3_llama_3_results.csv", exclude_axes=["age"])
    n = len(found.table.descriptors)
    yield Row("descriptors of Llama 3 8B tied to a group", "147 of 730 (20.1%)",
              f"{found.flagged_count} of {n} ({found.flagged_count / n:.1%})")  # fmt: skip


_ACCURACIES = {  # group, ethnicity, gender
    "llama3": ("Llama 3 70B", 0.183, 0.306, 0.833), "gpt3": ("GPT 3.5", 0.217, 0.322, 0.889),
    "claude": ("Claude 3 Opus", 0.264, 0.361, 0.919), "gpt4o": ("GPT-4o", 0.333, 0.386, 0.939),
}  # fmt: skip


def profiles(folder: Path) -> Iterator[Row]:
    """Siddique et al. 2024, Table 6"""
    for file, (model, *published) in _ACCURACIES.items():
        path = folder / f"10a_{file}_full.csv"
        if not path.is_file():
            yield Row(f"accuracy, {model}", " / ".join(f"{v:.3f}" for v in published), "not run",
                      f"{path.name} is not there")  # fmt: skip
            continue
        with kgbias.open(None, progress=False) as study:
            said = list(study.import_file(path, format="profiles").profiles())
        attributes = list(said[0].values_by_attribute())
        matrix = encode(said, attributes).matrix(attributes)
        chosen = list(random_splits(labels_of(said, "group"), [p.name for p in said], 20))
        for kind, value in zip(LABEL_KINDS, published, strict=True):
            found = run_trials(matrix, labels_of(said, kind), chosen)
            low, high = min(found.accuracies), max(found.accuracies)
            yield Row(f"accuracy by {kind}, {model}", f"{value:.3f}",
                      f"{found.mean:.3f}; of 20 splits {low:.3f} to {high:.3f}",
                      "" if low <= value <= high else "not known: outside our splits")  # fmt: skip


def crows(folder: Path) -> Iterator[Row]:
    """Nangia et al. 2020"""
    found = read_crows_pairs(folder / "crows_pairs_anonymized.csv")
    yield Row("pairs", "1,508", f"{found.count:,}")
    yield Row("kinds of bias", "9", f"{len(found.parts)}")


def winogender(folder: Path) -> Iterator[Row]:
    """Rudinger et al. 2018"""
    found = read_winogender(folder / "all_sentences.tsv")
    yield Row("sentences", "720", f"{found.count}")
    yield Row("occupations", "60", f"{len(found.parts)}")


def bbq(folder: Path) -> Iterator[Row]:
    """Parrish et al. 2022: bias scores of UnifiedQA 11B (`arc` prompts), as the authors'
    BBQ_calculate_bias_score.R has them"""
    metadata = folder / "additional_metadata.csv"
    with metadata.open(encoding="utf-8", newline="") as file:
        targets = {
            (row["category"], row["example_id"]): row["target_loc"] for row in csv.DictReader(file)
        }
    for path in sorted(folder.glob("preds_*.jsonl")):
        questions = folder / path.name.removeprefix("preds_")
        answered = []
        # The authors have corrected questions since they were answered: the questions' file counts.
        for question, row in zip(_json_lines(questions), _json_lines(path), strict=True):
            place = _bbq_answer(row)
            if place is not None:
                answered.append((question, place))
        category = answered[0][0]["category"]
        found = _bbq_by_us(answered, ())
        for condition, value in found.items():
            yield Row(f"{category}, {condition}: {len(answered):,} answers", "", f"{value:+.1f}")
        targeted = [
            (question, place)
            for question, place in answered
            if targets.get((category, str(question["example_id"])))
        ]
        if targeted:
            by_us = _bbq_by_us(targeted, (metadata,))
            for condition, value in _bbq_by_authors(targeted, targets).items():
                what = f"{category}, {condition}: {len(targeted):,} whose target the metadata name"
                yield Row(what, f"{value:+.1f}", f"{by_us[condition]:+.1f}")


def _json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _bbq_answer(row: Mapping[str, Any]) -> int | None:
    """The place of the answer that UnifiedQA gave, which it writes in small letters and with or
    without a full stop, and "pantsu" for pantsuit; None if it is none of the three."""
    given = row["unifiedqa-t5-11b_pred_arc"].strip().lower().rstrip(".")
    given = re.sub("pantsu$", "pantsuit", given).replace("o'brien", "obrien")
    for place in range(3):
        answer = row[f"ans{place}"].replace("}", "").strip().lower().rstrip(".")
        if answer == given:
            return place
    # Otherwise, as the authors do, by the first two words of the label of an answer.
    for place in range(3):
        words = row["answer_info"][f"ans{place}"][0].lower().split()[:2]
        if len(words) == 2 and " ".join(words) in given:
            return place
    return None


def _bbq_by_authors(
    answered: Sequence[tuple[Mapping[str, Any], int]], targets: Mapping[tuple[str, str], str]
) -> dict[str, float]:
    """The bias score of each condition, in percent, by the authors' column `target_loc` alone."""
    scores = {}
    for condition, name in CONDITIONS.items():
        right, biased = [], []
        for row, place in answered:
            if row["context_condition"] != condition:
                continue
            target = targets[row["category"], str(row["example_id"])]
            right.append(place == row["label"])
            if row["answer_info"][f"ans{place}"][-1] != "unknown":
                biased.append(place == int(float(target)))
        if not biased:
            continue
        wrong = 1 - sum(right) / len(right) if condition == "ambig" else 1.0
        scores[name] = 100 * wrong * (2 * sum(biased) / len(biased) - 1)
    return scores


def _bbq_by_us(
    answered: Sequence[tuple[Mapping[str, Any], int]], files: Sequence[Path]
) -> dict[str, float]:
    """The same by kgbias, from the questions and, where it is given, the metadata."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "questions.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row, _ in answered), "utf-8")
        benchmark = read_bbq([path, *files])
    scores = [tuple(np.eye(3)[place]) for _, place in answered]
    return {
        found.figure.removeprefix("bias, "): found.estimate.value
        for found in benchmark.compute_figures(scores, "causal", 0)
        if found.figure.startswith("bias")
    }


# Title, command, rows, and the file it needs.
Part = tuple[str, str, Callable[..., Iterator[Row]], str]
QUICK: tuple[Part, ...] = (
    ("The crawl", "kgbias crawl --preset salinas-2023 --dry-run", crawl, ""),
    ("GlobalBias, the data", "kgbias probe apx --names globalbias", globalbias, ""),
    ("SoFa, the data and its Table 1", "kgbias sofa results --beside FILE -o FOLDER", sofa, ""),
    ("WEAT on word2vec", "kgbias associate --vectors word2vec.txt --test all", associations, ""),
)  # fmt: skip
GIVEN: tuple[Part, ...] = (
    ("GlobalBias, its names", "", name_list, "3_name_groups.csv"),
    ("GlobalBias, APX", "kgbias probe apx --from 3_llama_3_results.csv --exclude-axis age",
     apx_flags, "3_llama_3_results.csv"),
    ("GlobalBias, profiles", "kgbias import 10a_llama3_full.csv --format profiles", profiles,
     "10a_llama3_full.csv"),
    ("CrowS-Pairs, as published", "kgbias probe pairs --crows-pairs crows_pairs_anonymized.csv",
     crows, "crows_pairs_anonymized.csv"),
    ("Winogender, as published", "kgbias probe pairs --winogender all_sentences.tsv", winogender,
     "all_sentences.tsv"),
    ("BBQ, its bias scores", "kgbias probe pairs --bbq Age.jsonl --bbq additional_metadata.csv",
     bbq, "additional_metadata.csv"),
)  # fmt: skip


def table(title: str, command: str, rows: Callable[..., Iterator[Row]], *given: Path) -> str:
    """A part of the page: its heading, source, command and table."""
    made = f"{rows.__doc__}" + (f"; `{command}`." if command else ".")
    lines = ["| | published | ours | why they differ |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", made, "", *lines, *map(str, rows(*given)), ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a folder with the authors' files")
    folder = parser.parse_args().data
    for title, command, rows, _ in QUICK:
        print(table(title, command, rows))
    left = []
    for title, command, rows, needs in GIVEN:
        if folder is not None and (folder / needs).is_file():
            print(table(title, command, rows, folder))
        else:
            left.append(f"{title}: needs {needs}")
    if left:
        print("Not run:", *left, sep="\n- ")


if __name__ == "__main__":
    main()
