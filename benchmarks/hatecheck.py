"""How far scorers agree with HateCheck, by function.

    python benchmarks/hatecheck.py test_suite_cases.csv --scorer MEASURE=SPEC [--scorer ...]

HateCheck (Röttger et al. 2021, CC-BY 4.0; github.com/paul-rottger/hatecheck-data) has 3,728 short
texts in 29 functions, each hateful or not. A text is flagged at 0.5 or more. Prints the share of
each function that is right, as a Markdown table, with a 95% interval over templates for the whole.
Any scorer of `kgbias measure` can take part, such as identity_attack=hf:ID:LABEL, or
identity_attack=scores:FILE::IDENTITY_ATTACK for Perspective's scores of these texts. The offline
scorers were trained on part of HateCheck: their figures here are too good, and their card has the
figures of readers that did not see the function.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from kgbias.errors import KgbiasError
from kgbias.measure.scorers import load_scorer
from kgbias.stats.inference import bootstrap

FLAG_THRESHOLD = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", type=Path, help="HateCheck's test_suite_cases.csv")
    parser.add_argument(
        "--scorer", action="append", metavar="MEASURE=SPEC", required=True, help="(repeatable)"
    )
    options = parser.parse_args()
    with options.cases.open(encoding="utf-8", newline="") as file:
        cases = list(csv.DictReader(file))
    texts = [case["test_case"].strip() for case in cases]
    hateful = np.array([case["label_gold"] == "hateful" for case in cases])
    columns = {}
    for scorer_spec in options.scorer:
        measure, _, spec = scorer_spec.partition("=")
        try:
            judgements = load_scorer(measure, spec or None).score(texts)
        except KgbiasError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        flagged = [np.nan if j is None else j.value >= FLAG_THRESHOLD for j in judgements]
        columns[scorer_spec] = np.array(flagged, dtype=np.float64)
    print_table(cases, hateful, columns)
    return 0


def print_table(
    cases: list[dict[str, str]], hateful: np.ndarray, columns: dict[str, np.ndarray]
) -> None:
    """Print the table; a text without a judgement counts as wrong."""
    right = {name: (flagged == hateful).astype(np.float64) for name, flagged in columns.items()}
    print(f"| function | n | hateful | {' | '.join(columns)} |")
    print("| --- |" + " --- |" * (2 + len(columns)))
    functions = np.array([case["functionality"] for case in cases])
    for function in np.unique(functions):
        mask = functions == function
        label = "yes" if hateful[mask].all() else "no"
        shares = " | ".join(f"{values[mask].mean():.2f}" for values in right.values())
        print(f"| {function} | {mask.sum()} | {label} | {shares} |")
    for title, mask in (
        ("hateful", hateful),
        ("not hateful", ~hateful),
        ("all", hateful == hateful),
    ):
        cells = " | ".join(
            template_interval(values[mask], cases, mask) for values in right.values()
        )
        print(f"| **{title}** | {mask.sum()} | | {cells} |")


def template_interval(values: np.ndarray, cases: list[dict[str, str]], mask: np.ndarray) -> str:
    """The mean with its bootstrap interval over templates, whose cases are not independent."""
    keys = np.array([case["functionality"] + case["case_templ"] for case in cases])[mask]
    _, place, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    sums = np.bincount(place, weights=values)
    pairs = np.stack([sums, sizes], axis=1)
    estimate = bootstrap(np.arange(len(pairs)), lambda rows: ratio_of_sums(pairs[rows.astype(int)]))
    return f"{values.mean():.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def ratio_of_sums(pairs: np.ndarray) -> np.ndarray:
    return np.asarray(pairs[..., 0].sum(axis=-1) / pairs[..., 1].sum(axis=-1))


if __name__ == "__main__":
    raise SystemExit(main())
