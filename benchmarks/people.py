"""Agreement with people: `kgbias known MODEL` on the nations of SeeGULL Multilingual, in the
English columns.

    python benchmarks/people.py FOLDER [MODEL] [PROBES]

FOLDER has the files of SeeGULL Multilingual (de-DE.csv ...). An entry of several files counts with
the most annotators that any of them has. The default is SmolLM2 with 45,000 probes.
"""

import csv
import sys
from pathlib import Path

import kgbias


def merge_tables(folder: Path) -> list[dict[str, object]]:
    """One table of all files: group, attribute, annotators (`stereotype`), offensiveness."""
    best: dict[tuple[str, str], dict[str, object]] = {}
    for path in sorted(folder.glob("*-*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                group = row["translated_identity"].strip(" ,.")
                attribute = row["translated_attribute_list"].strip(" ,.").lower()
                count = int(float(row["stereotype"] or 0))
                entry = best.setdefault(
                    (group.lower(), attribute),
                    {"group": group, "attribute": attribute, "stereotype": 0, "offensiveness": ""},
                )
                if group and attribute and count >= int(str(entry["stereotype"])):
                    entry |= {"stereotype": count, "offensiveness": row["mean_offensive_score"]}
    return [entry for entry in best.values() if entry["group"] and entry["attribute"]]


def main(folder: str, model: str = "smollm2", probes: str = "45000") -> None:
    with kgbias.open(None, progress=True) as study:
        found = study.recorded_agreement(model, merge_tables(Path(folder)), probes=int(probes))
    print(f"{len(found.table.groups)} groups, {len(found.table.attributes)} attributes")
    for figure in found.figures:
        print(
            f"{figure.kind:6} {figure.direction:16} {figure.by:14} {figure.auc.value:.3f} "
            f"[{figure.auc.interval('.3f')}] over groups [{figure.low_over_groups:.3f}, "
            f"{figure.high_over_groups:.3f}] floor {figure.floor:.3f}, 95% below "
            f"{figure.floor_high:.3f}; {figure.entries} entries"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
