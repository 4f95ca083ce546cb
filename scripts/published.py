"""Published numbers beside what kgbias finds: the tables of benchmarks/published.md.

    python scripts/published.py                # what the repository has the data for: seconds
    python scripts/published.py --data FOLDER  # also what can be had of the authors' files: minutes
    python scripts/published.py --data FOLDER --fetch   # fetches these files into FOLDER first

FOLDER holds copies of the authors' files under their own names; `--fetch` prints and runs the
commands of git that get them (`SOURCES`). Prints the tables, and what it could not run.
"""

import argparse
import csv
import gzip
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import kgbias
from kgbias.compare.sofa import measure_rank_agreements
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.seeds import choose_seeds
from kgbias.errors import DataError
from kgbias.graph.profiles import list_profile_labels
from kgbias.io.reading import use_fallback_encoding
from kgbias.io.stereoset_file import LABELS, PARTS, StereoSetExample, read_examples
from kgbias.io.tables import read_table
from kgbias.methods.apx.result import flag_apx_table
from kgbias.methods.associations.result import Statistics
from kgbias.methods.associations.sets import find_tests
from kgbias.methods.associations.weat import weat
from kgbias.methods.benchmarks.base import OVERALL
from kgbias.methods.benchmarks.bbq import CONDITIONS, read_bbq
from kgbias.methods.benchmarks.crows import read_crows_pairs
from kgbias.methods.benchmarks.stereoset import StereoSet
from kgbias.methods.benchmarks.winogender import read_winogender
from kgbias.methods.profiles import list_profiles
from kgbias.methods.profiles.analysis import LABEL_KINDS, encode_profiles
from kgbias.methods.profiles.classify import random_splits, run_trials
from kgbias.methods.sofa.benchmark_scores import read_benchmarks
from kgbias.models.vectors import load_static_vectors
from kgbias.probe.sets import (
    TEMPLATES,
    read_descriptor_label_by_group,
    read_descriptors,
    read_identities,
    read_names,
    read_statements,
)

DATA = Path(__file__).parent.parent / "tests" / "data"
# The repositories that hold the authors' files, and which of their files are read here.
SOURCES: Mapping[str, tuple[str, ...]] = {
    "https://github.com/groovychoons/GlobalBias": (
        "data/3_name_groups.csv",
        "data/10a_*_full.csv",
        "results/3_llama_3_results.csv",
    ),
    "https://github.com/nyu-mll/crows-pairs": ("data/crows_pairs_anonymized.csv",),
    "https://github.com/rudinger/winogender-schemas": ("data/all_sentences.tsv",),
    "https://github.com/moinnadeem/StereoSet": (
        "data/dev.json",
        "code/predictions.txt",
        "code/predictions/predictions_*.json",
    ),
    "https://github.com/nyu-mll/BBQ": (
        "analysis_scripts/additional_metadata.csv",
        "data/*.jsonl",
        "results/UnifiedQA/preds_*.jsonl",
    ),
    "https://github.com/jerryspan/Dutch-CrowS-Pairs": ("results/results_mlms/*/results_*.csv",),
    "https://github.com/marionbartl/gender-bias-BERT": ("BEC-Pro/BEC-Pro_*.tsv",),
    "https://github.com/HKUST-KnowComp/MLMA_hate_speech": ("hate_speech_mlma.zip",),
    "https://github.com/uclanlp/corefBias": ("WinoBias/wino/data/*stereotyped_type*.txt.*",),
}


@dataclass(frozen=True)
class PublishedRow:
    """A published value and ours, and why they differ where they do."""

    quantity: str
    published: str
    ours: str
    why: str = ""

    def __str__(self) -> str:
        return f"| {self.quantity} | {self.published} | {self.ours} | {self.why} |"


def crawl() -> Iterator[PublishedRow]:
    """Salinas et al. 2023, section 5.3"""
    config = CrawlConfig(seeds=tuple(choose_seeds("any", ["gender"])))
    n = len(config.groups)
    yield PublishedRow(
        f"triples after all iterations, {n} groups",
        f"{100 * n} (100 a group)",
        f"{config.place_count}",
    )


def globalbias() -> Iterator[PublishedRow]:
    """Siddique et al. 2024, Table 2 and section 4.4"""
    names, descriptors = read_names("globalbias"), read_descriptors("globalbias")
    labels = read_descriptor_label_by_group("globalbias")
    sentences = len(names) * len(descriptors) * len(TEMPLATES)
    labelled_names = sum(group in labels for _, group in names)
    described = sum(d.label in set(labels.values()) for d in descriptors)
    yield PublishedRow(
        "names",
        "400 unique",
        f"{len(names)}, {len({n for n, _ in names})} unique",
        "*Wafa* is in the authors' list twice",
    )
    yield PublishedRow("groups", "40", f"{len({g for _, g in names})}")
    yield PublishedRow("descriptors", "730", f"{len(descriptors)}")
    yield PublishedRow("sentences", "876,000", f"{sentences:,}")
    yield PublishedRow(
        "names of the four ethnicities that people were asked about", "280", f"{labelled_names}"
    )
    yield PublishedRow("descriptors that people said of one of them", "44", f"{described}")
    yield PublishedRow(
        "sentences of both", "36,960", f"{labelled_names * described * len(TEMPLATES):,}"
    )


_SIZES = {
    "nationality": (224, 4552, 1_024_200),
    "gender": (115, 3405, 394_980),
    "disability": (55, 572, 31_460),
    "religion": (14, 2820, 39_480),
}


def sofa() -> Iterator[PublishedRow]:
    """Marchiori Manerba et al. 2023, Tables 1 and 5"""
    identities = read_identities("sofa")
    for category, (groups, statements, probes) in _SIZES.items():
        ours = len(identities[category])
        fewer = "" if ours == groups else "the ported lexicon that kgbias ships has one fewer"
        yield PublishedRow(f"identities, {category}", f"{groups}", f"{ours}", fewer)
        product = groups * statements
        printed = (
            f"the table's {groups} identities times {statements:,} statements; the number "
            f"printed is {probes // statements} times {statements:,}"
        )
        yield PublishedRow(
            f"probes, {category}",
            f"{probes:,}",
            f"{product:,}",
            "" if product == probes else printed,
        )
    taus = measure_rank_agreements(read_benchmarks(DATA / "sofa_table_1.csv"))
    published = {
        ("StereoSet", "CrowS-Pairs"): "0.911",
        ("SoFa", "StereoSet"): "-0.022",
        ("SoFa", "CrowS-Pairs"): "-0.022",
    }
    for pair, value in published.items():
        yield PublishedRow(
            f"Kendall's tau of the ten models by {' and '.join(pair)}", value, f"{taus[pair]:.3f}"
        )


_WEAT = (1.54, 1.63, 0.58, 1.24, 0.72, 1.89, 0.97, 1.24, 1.30, -0.08)


def associations() -> Iterator[PublishedRow]:
    """Caliskan et al. 2017, on word2vec, as quoted in WEFE's notebook WEAT_experiments"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "word2vec_347x300.txt"
        path.write_bytes(gzip.decompress((DATA / "word2vec_347x300.txt.gz").read_bytes()))
        vectors = load_static_vectors(path)
        for number, published in enumerate(_WEAT, 1):
            (test,) = find_tests([f"weat{number}"])
            result = weat(test, vectors, Statistics(how="normal"))
            missing = sum(len(use.missing) for use in result.sets.values())
            total = sum(len(use.known) for use in result.sets.values()) + missing
            is_near = abs(result.effect_size - published) <= 0.005
            yield PublishedRow(
                f"d of {test.name}: {test.title}",
                f"{published:+.2f}",
                f"{result.effect_size:+.2f}",
                ""
                if is_near
                else f"the repository's excerpt of word2vec lacks {missing} of the {total} words"
                if missing
                else "not known: no word is missing",
            )


def name_list(folder: Path) -> Iterator[PublishedRow]:
    """Siddique et al. 2024, section 3.1"""
    with (folder / "3_name_groups.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    group_counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        group_counts[row["Cluster"]][row["Group"]] += 1
    lengths = [len(row["firstname"]) for row in rows]
    pure_clusters = sum(max(c.values()) > c.total() / 2 for c in group_counts.values())
    sizes = sorted(set(Counter(row["Group"] for row in rows).values()))
    yield PublishedRow("names per group", "10", " or ".join(map(str, sizes)))
    yield PublishedRow("characters of a name", "2 to 14", f"{min(lengths)} to {max(lengths)}")
    yield PublishedRow(
        "clusters of which more than half is one group",
        "all",
        f"{pure_clusters} of {len(group_counts)}",
        "of the chosen names alone; some were taken for their probability",
    )


def apx_flags(folder: Path) -> Iterator[PublishedRow]:
    """Siddique et al. 2024, section 5"""
    result = flag_apx_table(folder / "3_llama_3_results.csv", ("age",))
    n = len(result.table.descriptors)
    yield PublishedRow(
        "descriptors of Llama 3 8B tied to a group",
        "147 of 730 (20.1%)",
        f"{result.flagged_count} of {n} ({result.flagged_count / n:.1%})",
    )


_ACCURACIES = {  # group, ethnicity, gender
    "llama3": ("Llama 3 70B", 0.183, 0.306, 0.833),
    "gpt3": ("GPT 3.5", 0.217, 0.322, 0.889),
    "claude": ("Claude 3 Opus", 0.264, 0.361, 0.919),
    "gpt4o": ("GPT-4o", 0.333, 0.386, 0.939),
}


def profiles(folder: Path) -> Iterator[PublishedRow]:
    """Siddique et al. 2024, Table 6"""
    for file, (model, *published) in _ACCURACIES.items():
        path = folder / f"10a_{file}_full.csv"
        if not path.is_file():
            yield PublishedRow(
                f"accuracy, {model}",
                " / ".join(f"{v:.3f}" for v in published),
                "not run",
                f"{path.name} is not there",
            )
            continue
        with kgbias.open(None, progress=False) as study:
            model_profiles = list(list_profiles(study.import_file(path, format="profiles")))
        attributes = list(model_profiles[0].values_by_attribute())
        matrix = encode_profiles(model_profiles, attributes).matrix(attributes)
        split_sets = list(
            random_splits(
                list_profile_labels(model_profiles, "group"), [p.name for p in model_profiles], 20
            )
        )
        for kind, value in zip(LABEL_KINDS, published, strict=True):
            accuracy_trials = run_trials(
                matrix, list_profile_labels(model_profiles, kind), split_sets
            )
            low, high = min(accuracy_trials.accuracies), max(accuracy_trials.accuracies)
            yield PublishedRow(
                f"accuracy by {kind}, {model}",
                f"{value:.3f}",
                f"{accuracy_trials.mean:.3f}; of 20 splits {low:.3f} to {high:.3f}",
                "" if low <= value <= high else "not known: outside our splits",
            )


def crows(folder: Path) -> Iterator[PublishedRow]:
    """Nangia et al. 2020"""
    benchmark = read_crows_pairs(folder / "crows_pairs_anonymized.csv")
    yield PublishedRow("pairs", "1,508", f"{benchmark.count:,}")
    yield PublishedRow("kinds of bias", "9", f"{len(benchmark.parts)}")


def winogender(folder: Path) -> Iterator[PublishedRow]:
    """Rudinger et al. 2018"""
    benchmark = read_winogender(folder / "all_sentences.tsv")
    yield PublishedRow("sentences", "720", f"{benchmark.count}")
    yield PublishedRow("occupations", "60", f"{len(benchmark.parts)}")


def stereoset(folder: Path) -> Iterator[PublishedRow]:
    """Nadeem et al. 2021: LMS, SS and ICAT from the authors' scores of each sentence, as their
    evaluation.py has them; three figures of each bias type and part, of each part, and of both"""
    examples, _ = read_examples(folder / "dev.json")
    sentence_ids = _stereoset_ids(folder / "dev.json")
    ids = [sentence_ids[example.name] for example in examples]
    agreeing, total = 0, 0
    for model, published in _stereoset_published(folder / "predictions.txt").items():
        path = folder / f"predictions_{model}.json"
        by_id = {
            row["id"]: row["score"]
            for rows in json.loads(path.read_text("utf-8")).values()
            for row in rows
        }
        scores = [tuple(by_id[sentence_id] for sentence_id in triple) for triple in ids]
        ours = _stereoset_figures(examples, scores)
        equal = [abs(ours[key] - value) < 1e-6 for key, value in published.items()]
        agreeing, total = agreeing + sum(equal), total + len(equal)
        shown = [
            " / ".join(f"{figures['intrasentence overall', name]:.2f}" for name in _STEREOSET_NAMES)
            for figures in (published, ours)
        ]
        yield PublishedRow(f"intrasentence, {model.partition('_')[0]}", *shown)
    yield PublishedRow(
        "figures in all, and those that are equal to 1e-6", f"{total}", f"{agreeing}"
    )


_STEREOSET_NAMES = {"LMS": "LM Score", "SS": "SS Score", "ICAT": "ICAT Score"}


def _stereoset_ids(path: Path) -> dict[str, tuple[str, ...]]:
    """The ids of the sentences of each example, in the order of `LABELS`."""
    ids = {}
    for rows in json.loads(path.read_text("utf-8"))["data"].values():
        for row in rows:
            by_label = {one["gold_label"]: one["id"] for one in row["sentences"]}
            ids[row["id"]] = tuple(by_label[label] for label in LABELS)
    return ids


def _stereoset_published(path: Path) -> dict[str, dict[tuple[str, str], float]]:
    """The figures of each model as the authors printed them, by part and bias type."""
    names = {printed: name for name, printed in _STEREOSET_NAMES.items()}
    figures: dict[str, dict[tuple[str, str], float]] = {}
    model = part = domain = ""
    for line in path.read_text("utf-8").splitlines():
        key, _, value = line.strip().partition(": ")
        if line.startswith("Evaluating"):
            model = line.partition("predictions_")[2].removesuffix(".json...")
            figures[model] = {}
        elif not value:
            part, domain = (part, key) if line.startswith("\t") else (key, "")
        elif key in names:
            figures[model][f"{part} {domain}".strip(), names[key]] = float(value)
    return figures


def _stereoset_figures(
    examples: Sequence[StereoSetExample], scores: Sequence[tuple[float, ...]]
) -> dict[tuple[str, str], float]:
    """The same by kgbias; "overall" alone is of both parts."""
    # Both parts are made one, whose figures over all examples are the last three.
    joined = [replace(example, part=PARTS[0], domain="") for example in examples]
    figures = {
        ("overall", found.figure): found.estimate.value
        for found in StereoSet(joined).compute_figures(scores, "causal", 0)
    }
    for found in StereoSet(examples).compute_figures(scores, "causal", 0):
        part = PARTS[1] if found.domain.startswith(PARTS[1]) else PARTS[0]
        domain = found.domain.removeprefix(f"{PARTS[1]} ")
        figures[f"{part} {domain}", found.figure] = found.estimate.value
    return figures


def bbq(folder: Path) -> Iterator[PublishedRow]:
    """Parrish et al. 2022: bias scores of UnifiedQA 11B (`arc` prompts), as the authors'
    BBQ_calculate_bias_score.R has them"""
    metadata = folder / "additional_metadata.csv"
    with metadata.open(encoding="utf-8", newline="") as file:
        targets = {
            (row["category"], row["example_id"]): row["target_loc"] for row in csv.DictReader(file)
        }
    for path in sorted(folder.glob("preds_*.jsonl")):
        questions = folder / path.name.removeprefix("preds_")
        answers = []
        # The authors have corrected questions since they were answered: the questions' file counts.
        for question, row in zip(_json_lines(questions), _json_lines(path), strict=True):
            place = _bbq_answer(row)
            if place is not None:
                answers.append((question, place))
        category = answers[0][0]["category"]
        scores = _bbq_own_scores(answers, ())
        for condition, value in scores.items():
            yield PublishedRow(
                f"{category}, {condition}: {len(answers):,} answers", "", f"{value:+.1f}"
            )
        targeted = [
            (question, place)
            for question, place in answers
            if targets.get((category, str(question["example_id"])))
        ]
        if targeted:
            by_us = _bbq_own_scores(targeted, (metadata,))
            for condition, value in _bbq_author_scores(targeted, targets).items():
                title = f"{category}, {condition}: {len(targeted):,} whose target the metadata name"
                yield PublishedRow(title, f"{value:+.1f}", f"{by_us[condition]:+.1f}")


def _json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _bbq_answer(row: Mapping[str, Any]) -> int | None:
    """The place of the answer that UnifiedQA gave, which it writes in small letters and with or
    without a full stop, and "pantsu" for pantsuit; None if it is none of the three."""
    text = row["unifiedqa-t5-11b_pred_arc"].strip().lower().rstrip(".")
    text = re.sub("pantsu$", "pantsuit", text).replace("o'brien", "obrien")
    for place in range(3):
        answer = row[f"ans{place}"].replace("}", "").strip().lower().rstrip(".")
        if answer == text:
            return place
    # Otherwise, as the authors do, by the first two words of the label of an answer.
    for place in range(3):
        words = row["answer_info"][f"ans{place}"][0].lower().split()[:2]
        if len(words) == 2 and " ".join(words) in text:
            return place
    return None


def _bbq_author_scores(
    answers: Sequence[tuple[Mapping[str, Any], int]], targets: Mapping[tuple[str, str], str]
) -> dict[str, float]:
    """The bias score of each condition, in percent, by the authors' column `target_loc` alone."""
    scores = {}
    for condition, name in CONDITIONS.items():
        right, biased = [], []
        for row, place in answers:
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


def _bbq_own_scores(
    answers: Sequence[tuple[Mapping[str, Any], int]], files: Sequence[Path]
) -> dict[str, float]:
    """The same by kgbias, from the questions and, where it is given, the metadata."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "questions.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row, _ in answers), "utf-8")
        benchmark = read_bbq([path, *files])
    scores = [tuple(np.eye(3)[place]) for _, place in answers]
    return {
        found.figure.removeprefix("bias, "): found.estimate.value
        for found in benchmark.compute_figures(scores, "causal", 0)
        if found.figure.startswith("bias")
    }


def dutch_crows(folder: Path) -> Iterator[PublishedRow]:
    """Dutch CrowS-Pairs: the metric score of each model from the authors' scores of the sentences,
    beside the mean of their column `score`; all pairs and nine kinds of bias"""
    agreeing, total = 0, 0
    for path in sorted(folder.glob("results_*.csv")):
        # Some of the files are in Mac Roman.
        with use_fallback_encoding("mac_roman"):
            rows = [
                row for _, row in read_table(path).rows if row["sent_more"] and row["sent_less"]
            ]
            benchmark = read_crows_pairs(path)
        scores = [(float(row["sent_more_score"]), float(row["sent_less_score"])) for row in rows]
        ours = {
            found.domain: found.estimate.value
            for found in benchmark.compute_figures(scores, "masked", 0)
        }
        by_kind: dict[str, list[float]] = {OVERALL: [float(row["score"]) for row in rows]}
        for row in rows:
            by_kind.setdefault(row["bias_type"], []).append(float(row["score"]))
        published = {kind: 100 * sum(marks) / len(marks) for kind, marks in by_kind.items()}
        agreeing += sum(abs(ours[kind] - value) < 1e-6 for kind, value in published.items())
        total += len(published)
        model = path.stem.removeprefix("results_")
        yield PublishedRow(model, f"{published[OVERALL]:.2f}", f"{ours[OVERALL]:.2f}")
    yield PublishedRow("scores in all, and those that are equal to 1e-6", f"{total}", f"{agreeing}")


def bec_pro(folder: Path) -> Iterator[PublishedRow]:
    """Bartl et al. 2020: sentences that are read"""
    for path in sorted(folder.glob("BEC-Pro_*.tsv")):
        texts = [text for texts in read_statements(path).values() for text in texts]
        yield PublishedRow(f"sentences, {path.name}", "5,400", f"{len(texts):,}")


def mlma(folder: Path) -> Iterator[PublishedRow]:
    """Ousidhoum et al. 2019: the groups that tweets are about, beside those of the column"""
    for path in sorted(folder.glob("*_dataset.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            written = {row["group"] for row in csv.DictReader(file)}
        groups = read_identities(path)[""]
        yield PublishedRow(f"groups, {path.name}", f"{len(written)}", f"{len(groups)}")


def wino_bias(folder: Path) -> Iterator[PublishedRow]:
    """Zhao et al. 2018: what kgbias does not read is refused by name"""
    paths = sorted(folder.glob("*stereotyped_type*.txt.*"))
    refused = 0
    for path in paths:
        try:
            read_statements(path)
        except DataError as error:
            refused += "WinoBias" in str(error)
    yield PublishedRow("files, and those that are refused by name", f"{len(paths)}", f"{refused}")


# Title, command, rows, and the file it needs.
Part = tuple[str, str, Callable[..., Iterator[PublishedRow]], str]
QUICK_PARTS: tuple[Part, ...] = (
    ("The crawl", "kgbias crawl --preset salinas-2023 --dry-run", crawl, ""),
    ("GlobalBias, the data", "kgbias probe apx --names globalbias", globalbias, ""),
    ("SoFa, the data and its Table 1", "kgbias sofa results --beside FILE -o FOLDER", sofa, ""),
    ("WEAT on word2vec", "kgbias associate --vectors word2vec.txt --test all", associations, ""),
)
DATA_PARTS: tuple[Part, ...] = (
    ("GlobalBias, its names", "", name_list, "3_name_groups.csv"),
    (
        "GlobalBias, APX",
        "kgbias probe apx --from 3_llama_3_results.csv --exclude-axis age",
        apx_flags,
        "3_llama_3_results.csv",
    ),
    (
        "GlobalBias, profiles",
        "kgbias import 10a_llama3_full.csv --format profiles",
        profiles,
        "10a_llama3_full.csv",
    ),
    (
        "CrowS-Pairs, as published",
        "kgbias probe pairs --crows-pairs crows_pairs_anonymized.csv",
        crows,
        "crows_pairs_anonymized.csv",
    ),
    (
        "Winogender, as published",
        "kgbias probe pairs --winogender all_sentences.tsv",
        winogender,
        "all_sentences.tsv",
    ),
    (
        "StereoSet, from the authors' scores",
        "kgbias probe pairs --stereoset dev.json",
        stereoset,
        "dev.json",
    ),
    (
        "BBQ, its bias scores",
        "kgbias probe pairs --bbq Age.jsonl --bbq additional_metadata.csv",
        bbq,
        "additional_metadata.csv",
    ),
    (
        "Dutch CrowS-Pairs, from the authors' scores",
        "kgbias probe pairs --crows-pairs results_bertje.csv --encoding mac_roman",
        dutch_crows,
        "results_bertje.csv",
    ),
    ("BEC-Pro", "kgbias probe sets --statements BEC-Pro_EN.tsv", bec_pro, "BEC-Pro_EN.tsv"),
    ("MLMA", "kgbias probe sets --identities en_dataset.csv", mlma, "en_dataset.csv"),
    (
        "WinoBias",
        "kgbias probe sets --statements pro_stereotyped_type1.txt.dev",
        wino_bias,
        "pro_stereotyped_type1.txt.dev",
    ),
)


def format_part(
    title: str, command: str, rows: Callable[..., Iterator[PublishedRow]], *folders: Path
) -> str:
    """A part of the page: its heading, source, command and table."""
    source = f"{rows.__doc__}" + (f"; `{command}`." if command else ".")
    lines = ["| | published | ours | why they differ |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", source, "", *lines, *map(str, rows(*folders)), ""])


def fetch(folder: Path, sources: Mapping[str, Sequence[str]] = SOURCES) -> None:
    """Copy the authors' files into a folder, each from a clone of its repository."""
    folder.mkdir(parents=True, exist_ok=True)
    for repository, patterns in sources.items():
        with tempfile.TemporaryDirectory() as clone:
            command = ["git", "clone", "--quiet", "--depth", "1", repository, clone]
            print("$", *command[:-1], flush=True)
            subprocess.run(command, check=True)
            for pattern in patterns:
                for path in sorted(Path(clone).glob(pattern)):
                    shutil.copy(path, folder / path.name)
                    if path.suffix == ".zip":
                        _unpack_flat(path, folder)


def _unpack_flat(archive: Path, folder: Path) -> None:
    """The files of an archive, without its folders."""
    with zipfile.ZipFile(archive) as files:
        for entry in files.infolist():
            if not entry.is_dir():
                (folder / Path(entry.filename).name).write_bytes(files.read(entry))


def source_rows() -> Iterator[str]:
    """The commands that fetch the authors' files, as rows of the page."""
    for repository, patterns in SOURCES.items():
        files = ", ".join(f"`{pattern}`" for pattern in patterns)
        yield f"| `git clone --depth 1 {repository}` | {files} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a folder with the authors' files")
    parser.add_argument("--fetch", action="store_true", help="fetch them into this folder first")
    arguments = parser.parse_args()
    folder = arguments.data
    if arguments.fetch:
        if folder is None:
            parser.error("--fetch needs --data FOLDER")
        fetch(folder)
    for title, command, rows, _ in QUICK_PARTS:
        print(format_part(title, command, rows))
    missing = []
    for title, command, rows, needs in DATA_PARTS:
        if folder is not None and (folder / needs).is_file():
            print(format_part(title, command, rows, folder))
        else:
            missing.append(f"{title}: needs {needs}")
    if missing:
        print("Not run:", *missing, sep="\n- ")


if __name__ == "__main__":
    main()
