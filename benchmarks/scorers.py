"""What four measures of a statement cost, compared with encoding the same texts once.

    python benchmarks/scorers.py [--texts 600] [--rounds 5] [--store kgbias.db]

The offline scorers of regard, toxicity, identity attack and acceptability share passes of the
encoder. Each round takes new texts, encodes them once through all of MiniLM's layers and scores
them by all four measures together, as `kgbias measure` does, both on one thread and in CPU time, so
other work on the machine matters little. The scorers read a statement as two or three texts: with
the group, and with a neutral word in its place, with the verb as it was and as it agrees; these are
also encoded once each for the comparison.

Exit code 1 if the median ratio is above --target.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import kgbias
from kgbias.measure.scorers import _minilm
from kgbias.measure.scorers._base import same_length_batches
from kgbias.measure.scorers._joint_scoring import ScoringTask
from kgbias.measure.scorers._offline import OfflineScorer

MEASURES = [measure.name for measure in kgbias.MEASURES.own_entries.values() if measure.heads]
GROUPS = "Women,Men,Bakers,Muslims,Dutch people,Nurses,Black people,Teenagers".split(",")
PREDICATES = "love,hate,are often seen as,can't stand,are known for,believe in,should have".split(
    ","
)
OBJECTS = "music,long walks by the sea,lazy,their families,the rain,good at cooking rice".split(",")


def make_statements(store: str | None, count: int) -> list[str]:
    """Distinct statements from the newest run of a store, or made up."""
    if store is not None:
        with kgbias.open(store) as study:
            texts = [t.sentence for t in study.run().triples(min_acceptability=0)]
    else:
        every = itertools.product(range(1000), GROUPS, PREDICATES, OBJECTS)
        texts = [
            f"{g} {said} {t}{f' {n}' if n else ''}."
            for n, g, said, t in itertools.islice(every, count)
        ]
    return list(dict.fromkeys(texts))[:count]


def encoding_work(texts: Sequence[str]) -> Callable[[], None]:
    """A function that encodes texts through all layers of MiniLM, in the scorers' batches."""
    import torch

    encoder, tokenizer = _minilm.load_encoder(), _minilm.load_tokenizer()

    def encode() -> None:
        ids = tokenizer(list(texts), truncation=True, max_length=_minilm.MAX_TOKENS)["input_ids"]
        for batch in same_length_batches([len(row) for row in ids], 1024):
            with torch.inference_mode():
                rows = torch.tensor([ids[n] for n in batch])
                encoder(input_ids=rows, attention_mask=torch.ones_like(rows))

    return encode


def cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", help="take the statements of its newest run")
    parser.add_argument("--target", type=float, default=1.5)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    texts = make_statements(options.store, options.texts)
    scorers = [OfflineScorer(measure, device="cpu") for measure in MEASURES]
    judge = ScoringTask(scorers, threads=1)
    encoding_work(texts[:32])()
    judge(texts[:32])
    ratios = []
    for number in range(options.rounds):
        round_texts = texts[32 + number :: options.rounds]
        read_texts = dict.fromkeys(
            scorer.masked_form(text) for scorer in scorers for text in round_texts
        )
        encode_seconds, judge_seconds = (
            cpu_seconds(encoding_work(list(read_texts))),
            cpu_seconds(partial(judge, round_texts)),
        )
        ratios.append(judge_seconds / encode_seconds)
        print(
            f"{len(round_texts)} statements: encoding their {len(read_texts)} texts once "
            f"{encode_seconds:.2f} s, "
            f"four measures {judge_seconds:.2f} s; ratio {ratios[-1]:.2f}"
        )
    median_ratio = statistics.median(ratios)
    print(f"median ratio {median_ratio:.2f}, target {options.target}")
    return int(median_ratio > options.target)


if __name__ == "__main__":
    sys.exit(main())
