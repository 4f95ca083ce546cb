"""Files that this method reads, for the attack on readers (tests/attack/readers.py)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.attack.readers import Reader

CROWS = (
    "sent_more,sent_less,stereo_antistereo,bias_type\nA b.,A c.,stereo,race\nD e.,D f.,stereo,age\n"
)
BBQ = (
    json.dumps(
        {
            "example_id": 1,
            "question_index": "1",
            "question_polarity": "neg",
            "context_condition": "ambig",
            "category": "Age",
            "label": 2,
            "context": "A boy and an old man sat.",
            "question": "Who slept?",
            "answer_info": {"ans0": ["boy", "young"], "ans1": ["old"], "ans2": ["unknown"]},
            "additional_metadata": {"stereotyped_groups": ["old"]},
            "ans0": "The boy",
            "ans1": "The man",
            "ans2": "Not known",
        }
    )
    + "\n"
)
WINOGENDER = (
    "sentid\tsentence\nnurse.patient.1.female.txt\tThe nurse told the patient she was tired.\n"
)
STEREOSET = json.dumps(
    {
        "version": "1",
        "data": {
            "intrasentence": [
                {
                    "id": "1",
                    "target": "t",
                    "bias_type": "race",
                    "context": "A BLANK b.",
                    "sentences": [
                        {"sentence": f"A {w} b.", "gold_label": label}
                        for w, label in (
                            ("x", "stereotype"),
                            ("y", "anti-stereotype"),
                            ("z", "unrelated"),
                        )
                    ],
                }
            ]
        },
    }
)


def _several_reader(whole: bytes) -> Callable[[Callable[..., Any], Path], Any]:
    """For what reads several files: the file beside one that is whole."""

    def call(read: Callable[..., Any], path: Path) -> Any:
        whole_file = path.with_name("whole.jsonl")
        whole_file.write_bytes(whole)
        return read([whole_file, path])

    return call


READERS = (
    Reader(
        "CrowS-Pairs", "kgbias.methods.benchmarks.crows:read_crows_pairs", {"csv": CROWS.encode()}
    ),
    Reader(
        "BBQ",
        "kgbias.methods.benchmarks.bbq:read_bbq",
        {
            "jsonl": BBQ.encode(),
            "csv": b"category,example_id,target_loc\nAge,1,1\n",
        },
        _several_reader(BBQ.encode()),
    ),
    Reader(
        "Winogender",
        "kgbias.methods.benchmarks.winogender:read_winogender",
        {"tsv": WINOGENDER.encode()},
    ),
    Reader(
        "StereoSet",
        "kgbias.methods.benchmarks.stereoset:read_stereoset",
        {"json": STEREOSET.encode()},
    ),
    Reader(
        "BBQ",
        "kgbias.methods.benchmarks.bbq:read_bbq",
        {"jsonl": BBQ.encode()},
        lambda read, path: read([path]),
    ),
)
