"""How fast masked probes are scored, compared with minicons and a plain loop, in one run.

    python benchmarks/masked.py [--shape small|base] [--repeats N] [--groups N] [--threads N]

BERT shapes with random weights and BERT's vocabulary of 30,522, on one thread unless --threads says
otherwise. Prints JSON: seconds (the process's own, the fastest of several alternating runs), the
speedup over each method, and the largest relative difference of a perplexity or probability.

- grid: pseudo-perplexities of identities x 50 statements.
- pairs: those of pairs of sentences that differ in who they are about, as in CrowS-Pairs.
- blanks: the probability of a word in a blank, three candidates each, as in StereoSet.

The other methods are:

- minicons: its masked scorer, in batches of 16 texts, if installed; otherwise the same method,
  written here: a text is copied once for each token asked for, the copies of a batch are padded to
  its longest text and read together, the output layer reads all positions, and the log-softmax is
  taken at the masked ones. (It reads blanks one text at a time.)
- loop: a sample of the texts, one masked copy at a time.

`count_operations` is the cost of the pseudo-perplexities in billions of floating-point operations:
as minicons reads the texts, as kgbias does, and at the least, with the last layer also computed
only at the masked position (except for its keys and values), and the first layer's projections of
tokens that the copies of a text share computed once; and for each, how much less that is than
minicons. `peak_rate` is what a product of large matrices reaches on this machine, in billions per
second.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from perplexity import GROUPS, STATEMENTS, split_parts

SHAPES = {"small": (6, 384, 6), "base": (12, 768, 12)}
BATCH_TEXTS = 16


def build(shape: str, folder: Path) -> None:
    """A random BERT of that shape, with the tokenizer of all-MiniLM-L6-v2, which is BERT's."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    from kgbias.models import resolve

    layers, width, heads = SHAPES[shape]
    torch.manual_seed(0)
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    BertForMaskedLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(resolve("minilm").location()).save_pretrained(folder)


class MiniconsScorer:
    """minicons' masked scorer."""

    name = "minicons"

    def __init__(self, folder: Path) -> None:
        from minicons.scorer import MaskedLMScorer

        self._scorer = MaskedLMScorer(str(folder), "cpu")
        if not hasattr(
            self._scorer.tokenizer, "batch_encode_plus"
        ):  # transformers 5 no longer has it
            self._scorer.tokenizer.batch_encode_plus = self._scorer.tokenizer.__call__

    def perplexities(self, texts: list[str]) -> np.ndarray:
        means: list[float] = []
        for start in range(0, len(texts), BATCH_TEXTS):
            means += self._scorer.sequence_score(
                texts[start : start + BATCH_TEXTS], reduction=lambda x: x.mean().item()
            )
        return np.exp(-np.array(means))

    def words(self, blanks: list[tuple[str, str]]) -> np.ndarray:
        probabilities: list[float] = []
        for start in range(0, len(blanks), BATCH_TEXTS):
            probabilities += self._scorer.cloze(blanks[start : start + BATCH_TEXTS], probs=True)
        return np.array(probabilities)


class MiniconsMethod:
    """minicons' method, written here."""

    name = "minicons' method"

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        self._model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def perplexities(self, texts: list[str]) -> np.ndarray:
        means: list[float] = []
        for start in range(0, len(texts), BATCH_TEXTS):
            encoded = self.tokenizer(
                texts[start : start + BATCH_TEXTS], padding=True, return_tensors="pt"
            )
            ends = encoded["attention_mask"].sum(1).tolist()
            places = [list(range(1, int(end) - 1)) for end in ends]
            means += [float(row.mean()) for row in self._read(encoded, places)]
        return np.exp(-np.array(means))

    def words(self, blanks: list[tuple[str, str]]) -> np.ndarray:
        probabilities = []
        for sentence, word in blanks:
            (token,) = self.tokenizer(word, add_special_tokens=False)["input_ids"]
            encoded = self.tokenizer([sentence], return_tensors="pt")
            (row,) = self._read(encoded, [[encoded["input_ids"][0].tolist().index(token)]])
            probabilities.append(float(row[0].exp()))
        return np.array(probabilities)

    def _read(self, encoded: Any, places: list[list[int]]) -> Any:
        import torch

        ids, tokens = [], []
        for row, positions in zip(encoded["input_ids"], places, strict=True):
            copies = row.repeat(len(positions), 1)
            copies[torch.arange(len(positions)), positions] = self.tokenizer.mask_token_id
            ids.append(copies)
            tokens += row[positions].tolist()
        lengths = [len(positions) for positions in places]
        attention = encoded["attention_mask"].repeat_interleave(torch.tensor(lengths), 0)
        with torch.no_grad():
            logits = self._model(torch.cat(ids), attention_mask=attention).logits
        positions = logits[torch.arange(len(tokens)), [place for row in places for place in row]]
        scores = positions - positions.logsumexp(1).unsqueeze(1)
        return scores[torch.arange(len(tokens)), tokens].split(lengths)


class LoopMethod(MiniconsMethod):
    """One masked copy at a time."""

    name = "loop"

    def perplexities(self, texts: list[str]) -> np.ndarray:
        perplexities = []
        for text in texts:
            encoded = self.tokenizer([text], return_tensors="pt")
            places = range(1, encoded["input_ids"].shape[1] - 1)
            values = [float(self._read(encoded, [[place]])[0][0]) for place in places]
            perplexities.append(float(np.exp(-np.mean(values))))
        return np.array(perplexities)


def make_pairs(groups: list[str], statements: list[str]) -> list[str]:
    """Each statement about two groups, pair by pair."""
    count = len(groups)
    return [
        f"{group} {statement}."
        for number, statement in enumerate(statements)
        for group in (groups[number % count], groups[(number + 1) % count])
    ]


def make_blanks(groups: list[str]) -> dict[str, Any]:
    """Data in StereoSet's form: for each group, three words for each of some blanks."""
    forms = ("{} are always BLANK at work", "you will find that {} are BLANK when it rains")
    words = (("late", "early", "green"), ("quiet", "loud", "round"), ("kind", "rude", "wooden"))
    labels = ("stereotype", "anti-stereotype", "unrelated")
    entries = []
    for group in groups:
        for form in forms:
            for row in words:
                context = form.format(group)
                sentences = [
                    {"gold_label": label, "sentence": context.replace("BLANK", word)}
                    for label, word in zip(labels, row, strict=True)
                ]
                entries.append(
                    {
                        "target": group,
                        "bias_type": "none",
                        "context": context,
                        "sentences": sentences,
                    }
                )
    return {"data": {"intrasentence": entries}}


def filled_words(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Each sentence of such a file, with the word that fills its blank."""
    filled = []
    for entry in data["data"]["intrasentence"]:
        before, after = entry["context"].split("BLANK")
        for sentence_row in entry["sentences"]:
            sentence = sentence_row["sentence"]
            filled.append((sentence, sentence[len(before) : len(sentence) - len(after)]))
    return filled


def compare(shape: str, groups: int, repeats: int) -> dict[str, Any]:
    from kgbias.methods.benchmarks.stereoset import read_stereoset
    from kgbias.models.score.load import open_scorer

    identities, statements = split_parts(GROUPS)[:groups], split_parts(STATEMENTS)
    with TemporaryDirectory() as place:
        folder = Path(place)
        build(shape, folder)
        scorer = open_scorer(f"hf:{folder}", device="cpu")
        peer: MiniconsScorer | MiniconsMethod
        try:
            peer = MiniconsScorer(folder)
        except ImportError:
            peer = MiniconsMethod(folder)
        loop = LoopMethod(folder)
        data = make_blanks(identities)
        (file := folder / "blanks.json").write_text(json.dumps(data))
        blanks = read_stereoset(file)
    grid = [f"{g} {s}" for g in identities for s in statements]
    pairs, words = make_pairs(identities, statements), filled_words(data)

    def filled() -> np.ndarray:
        rows = blanks.ask(scorer, range(len(blanks.items)))
        return np.array([value for scores, _ in rows for value in scores])

    works: dict[str, tuple[list[Any], Callable[[], np.ndarray], str]] = {
        "grid": (
            grid,
            lambda: scorer.grid(identities, statements).probes.perplexities.ravel(),
            "perplexities",
        ),
        "pairs": (pairs, lambda: scorer.score(pairs).perplexities, "perplexities"),
        "blanks": (words, filled, "words"),
    }
    result: dict[str, Any] = {"model": shape, "peak": peak_rate()}
    for name, (texts, ours, how) in works.items():
        seconds: dict[str, list[float]] = {peer.name: [], "kgbias": []}
        for _ in range(repeats):
            spent, peer_values = time_once(lambda own=texts, how=how: getattr(peer, how)(own))  # type: ignore[misc]
            seconds[peer.name].append(spent)
            spent, values = time_once(ours)
            seconds["kgbias"].append(spent)
        sample = np.random.default_rng(0).choice(len(texts), min(24, len(texts)), replace=False)
        sampled_texts = [texts[n] for n in sample]
        spent, loop_values = time_once(lambda own=sampled_texts, how=how: getattr(loop, how)(own))  # type: ignore[misc]
        fastest = min(seconds["kgbias"])
        result[name] = {
            "texts": len(texts),
            "seconds": {method: [round(s, 2) for s in row] for method, row in seconds.items()},
            "speedup": {
                peer.name: round(min(seconds[peer.name]) / fastest, 2),
                "loop": round(spent * len(texts) / len(sample) / fastest, 2),
            },
            "largest_relative_difference": {
                peer.name: float(np.abs(peer_values / values - 1).max()),
                "loop": float(np.abs(loop_values / values[sample] - 1).max()),
            },
        }
        if how == "perplexities":
            result[name]["operations"] = count_operations(texts, loop.tokenizer, shape)
    return result


def count_operations(texts: list[str], tokenizer: Any, shape: str) -> dict[str, Any]:
    layers, width, _ = SHAPES[shape]
    token_ids = [tuple(tokenizer(text)["input_ids"]) for text in texts]
    batches = [
        token_ids[start : start + BATCH_TEXTS] for start in range(0, len(token_ids), BATCH_TEXTS)
    ]
    copies = {(*ids[:n], 0, *ids[n + 1 :]): n for ids in token_ids for n in range(1, len(ids) - 1)}
    tokens, square = sum(map(len, copies)), width**2
    padded = sum(max(map(len, b)) * sum(len(ids) - 2 for ids in b) for b in batches)
    # Per token, at 2 for each weight.
    mix = 4 * width * tokens / len(copies)
    head = 2 * square + 2 * width * len(tokenizer)
    layer = 4 * square + 20 * square + mix
    minicons = padded * (layers * layer + head)
    kgbias = tokens * layers * layer + len(copies) * head
    last_saving = (tokens - len(copies)) * (layer - 4 * square)
    first_saving = (tokens - 2 * len(copies)) * 6 * square
    least = kgbias - last_saving - first_saving
    return {
        "minicons": round(minicons / 1e9),
        "kgbias": [round(kgbias / 1e9), round(minicons / kgbias, 2)],
        "least": [round(least / 1e9), round(minicons / least, 2)],
    }


def peak_rate() -> float:
    import torch

    a, b = torch.ones(2048, 768), torch.ones(768, 3072)
    spent = min(time_once(lambda: torch.mm(a, b).numpy())[0] for _ in range(10))
    return round(2 * 2048 * 768 * 3072 / spent / 1e9, 1)


def time_once(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", action="append", choices=list(SHAPES), help="repeatable")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--groups", type=int, default=40, help="how many of the 40 identities")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch

    torch.set_num_threads(arguments.threads)
    shapes = arguments.shape or list(SHAPES)
    results = [compare(shape, arguments.groups, arguments.repeats) for shape in shapes]
    print(json.dumps({"threads": arguments.threads, "models": results}, indent=2))


if __name__ == "__main__":
    main()
