"""How fast probes are scored, compared with the methods that others use, in one run.

    python benchmarks/perplexity.py [--model SPEC] [--shape small|large|none] [--repeats N]

40 identities x 50 statements on GPT-2 shapes with random weights and a vocabulary of 50,257, on one
thread unless --threads says otherwise. Prints JSON: seconds, the speedup over each method, the
largest relative difference of a perplexity, and memory.

- evaluate: as in Hugging Face evaluate's perplexity. Batches of 16 in the given order, padded,
  BOS in front, the cross entropy of the whole logits, then the mask.
- minicons: as in its incremental scorer. The same batches; each text's logits minus their
  logsumexp, then the tokens are picked.
- lm-eval: as in the loglikelihood of lm-evaluation-harness. Sorted by length, the last token not
  fed, log_softmax of the whole logits, then the statement's tokens are picked.

Each is written here from its description, with nothing around it that would slow it down. The
methods take turns, and the fastest of several runs counts, because other work on the machine only
adds. Seconds are the process's own (CPU time), which other work disturbs least.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

GROUPS = """
Tall people | Short people | Left-handed people | Red-haired people | Bald people | Twins |
Farmers | Bakers | Sailors | Night owls | Early risers | Cyclists | Beekeepers | Gardeners |
Chess players | Choir singers | Stamp collectors | Mountain climbers | Vegetarians | Coffee
drinkers | Tea drinkers | Dog owners | Cat owners | Bird watchers | Knitters | Marathon
runners | Swimmers | Potters | Librarians | Bus drivers | Carpenters | Tailors | Violinists
| Painters | Poets | Astronomers | Fishermen | Shepherds | Islanders | City dwellers
"""
STATEMENTS = """
are always late for dinner | love to cook for their neighbours | never finish the books they
start | are good with numbers | cannot keep a secret for long | like long walks in the rain
| are afraid of the dark | drive too fast on the motorway | help strangers without being
asked | spend too much money on shoes | sing when they think nobody listens | hate loud
music in the morning | are the best friends you can have | forget the names of people they
meet | eat too much sugar | know how to repair a clock | sleep less than anybody else | talk
about the weather all day | make excellent soup | are bad at telling jokes | always carry an
umbrella | write letters to the newspaper | believe in ghosts | are proud of their gardens |
waste time on the telephone | learn new languages quickly | never say thank you | are kind
to animals | take things too seriously | can't dance | tell wonderful stories to children |
buy things they do not need | are hard to please | keep their houses very clean | lose their
keys every week | work harder than they should | are honest about their mistakes | laugh at
everything | get lost in their own town | remember every birthday | cheat at card games |
are patient teachers | complain about the price of bread | grow the largest pumpkins in the
village | avoid difficult conversations | are famous for their hospitality | never throw
anything away | win most of their arguments | dream of living by the sea | save money for
their grandchildren
"""
SHAPES = {"small": (6, 384, 6), "large": (12, 768, 12)}
BATCH_TEXTS = 16

Texts = list[tuple[str, str]]


def split_parts(text: str) -> list[str]:
    return [part.strip() for part in " ".join(text.split()).split("|")]


def evaluate_method(model: Any, tokenizer: Any, bos: int, texts: Texts) -> np.ndarray:
    import torch

    perplexities = []
    entropy = torch.nn.CrossEntropyLoss(reduction="none")
    encoded = tokenizer([f"{g} {s}" for g, s in texts], padding=True, return_tensors="pt")
    for start in range(0, len(texts), BATCH_TEXTS):
        ids = encoded["input_ids"][start : start + BATCH_TEXTS]
        mask = encoded["attention_mask"][start : start + BATCH_TEXTS]
        ids = torch.cat([torch.full((len(ids), 1), bos), ids], dim=1)
        mask = torch.cat([torch.ones(len(mask), 1, dtype=torch.int64), mask], dim=1)
        with torch.no_grad():
            logits = model(ids, attention_mask=mask).logits
        kept_mask = mask[:, 1:].contiguous()
        loss = entropy(logits[:, :-1].contiguous().transpose(1, 2), ids[:, 1:].contiguous())
        perplexities += torch.exp((loss * kept_mask).sum(1) / kept_mask.sum(1)).tolist()
    return np.array(perplexities)


def minicons_method(model: Any, tokenizer: Any, bos: int, texts: Texts) -> np.ndarray:
    import torch

    perplexities = []
    for start in range(0, len(texts), BATCH_TEXTS):
        rows = texts[start : start + BATCH_TEXTS]
        encoded = tokenizer([f"{g} {s}" for g, s in rows], padding=True, return_tensors="pt")
        ids = torch.cat([torch.full((len(rows), 1), bos), encoded["input_ids"]], dim=1)
        mask = torch.cat(
            [torch.ones(len(rows), 1, dtype=torch.int64), encoded["attention_mask"]], dim=1
        )
        with torch.no_grad():
            logits = model(ids, attention_mask=mask).logits
        for row in range(len(rows)):
            length = int(mask[row].sum())
            text_logits = logits[row, : length - 1]
            scores = text_logits - text_logits.logsumexp(1).unsqueeze(1)
            token_scores = scores[torch.arange(length - 1), ids[row, 1:length]]
            perplexities.append(float(torch.exp(-token_scores.mean())))
    return np.array(perplexities)


def lm_eval_method(model: Any, tokenizer: Any, bos: int, texts: Texts) -> np.ndarray:
    import torch
    from torch.nn.functional import log_softmax

    encoded = []
    for group, statement in texts:
        context = [bos, *tokenizer(group)["input_ids"]]
        whole_ids = [bos, *tokenizer(f"{group} {statement}")["input_ids"]]
        encoded.append((context, whole_ids))
    order = sorted(range(len(texts)), key=lambda n: -len(encoded[n][1]))
    log_likelihoods = np.empty(len(texts))
    for start in range(0, len(order), BATCH_TEXTS):
        chunk = order[start : start + BATCH_TEXTS]
        longest = max(len(encoded[n][1]) for n in chunk) - 1
        ids = torch.zeros((len(chunk), longest), dtype=torch.int64)
        for row, n in enumerate(chunk):
            ids[row, : len(encoded[n][1]) - 1] = torch.tensor(encoded[n][1][:-1])
        with torch.no_grad():
            logits = log_softmax(model(ids).logits, dim=-1)
        for row, n in enumerate(chunk):
            context, whole_ids = encoded[n]
            statement_logits = logits[row, len(context) - 1 : len(whole_ids) - 1]
            target = torch.tensor(whole_ids[len(context) :])
            _ = bool((statement_logits.argmax(-1) == target).all())  # is_greedy
            log_likelihoods[n] = float(statement_logits.gather(1, target[:, None]).sum())
    return log_likelihoods


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "evaluate": evaluate_method,
    "minicons": minicons_method,
    "lm_eval": lm_eval_method,
}


def build(shape: str) -> tuple[Any, Any, int]:
    """A random GPT-2 of that shape, with the tokenizer of SmolLM2 (49,152 of the 50,257 ids)."""
    import torch
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    from kgbias.models import resolve

    layers, width, heads = SHAPES[shape]
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(n_layer=layers, n_embd=width, n_head=heads, bos_token_id=0, eos_token_id=0)
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(resolve("smollm2").location())
    tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer, int(tokenizer.bos_token_id)


def read_model(spec: str, dtype: Any) -> tuple[Any, Any]:
    """The unmodified model of a spec, and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from kgbias.models import resolve

    files = resolve(spec)
    name, revision = files.location(), files.commit
    model = AutoModelForCausalLM.from_pretrained(name, revision=revision, dtype=dtype).eval()
    return model, AutoTokenizer.from_pretrained(name, revision=revision)


def load_model(name: str) -> tuple[Any, Any, int]:
    import torch

    if name in SHAPES:
        return build(name)
    model, tokenizer = read_model(name, torch.float32)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return model, tokenizer, int(tokenizer.bos_token_id)


def make_scorer(model: Any, tokenizer: Any) -> Any:
    """A scorer on a copy, because kgbias replaces activations and the other methods must get the
    unmodified model."""
    from kgbias.models.base import ModelInfo
    from kgbias.models.score.base import CausalScorer

    return CausalScorer(ModelInfo("benchmark"), tokenizer, deepcopy(model))


def time_once(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def compare(name: str, repeats: int, max_groups: int = 40) -> dict[str, Any]:
    model, tokenizer, bos = load_model(name)
    groups, statements = split_parts(GROUPS)[:max_groups], split_parts(STATEMENTS)
    texts = [(g, s) for g in groups for s in statements]
    scorer = make_scorer(model, tokenizer)
    works: dict[str, Callable[[], Any]] = {
        method: lambda run=run: run(model, tokenizer, bos, texts)  # type: ignore[misc]
        for method, run in METHODS.items()
    }
    works["kgbias"] = lambda: scorer.grid(groups, statements)
    seconds: dict[str, list[float]] = {method: [] for method in works}
    results: dict[str, Any] = {}
    for _ in range(repeats):
        for method, work in works.items():
            spent, results[method] = time_once(work)
            seconds[method].append(spent)
    fastest = {method: min(spent) for method, spent in seconds.items()}
    grid = results["kgbias"]
    ours, log_likelihoods = grid.probes.perplexities.ravel(), grid.statement.log_likelihoods.ravel()
    alone_count, one_by_one, gap = score_alone(model, bos, scorer, texts, ours)
    return {
        "model": name,
        "tier": scorer.convention.tier,
        "probes": len(texts),
        "tokens": int(grid.probes.tokens.sum()),
        "seconds": {method: round(spent, 2) for method, spent in fastest.items()},
        "all_seconds": {m: [round(spent, 2) for spent in row] for m, row in seconds.items()},
        "speedup": {m: round(fastest[m] / fastest["kgbias"], 2) for m in METHODS},
        "speedup_over_one_by_one": round(
            one_by_one * len(texts) / alone_count / fastest["kgbias"], 1
        ),
        "largest_relative_difference": {
            "evaluate": float(np.abs(results["evaluate"] / ours - 1).max()),
            "minicons": float(np.abs(results["minicons"] / ours - 1).max()),
            "lm_eval_log_likelihood": float(np.abs(results["lm_eval"] / log_likelihoods - 1).max()),
            "one_by_one": gap,
        },
    }


def score_alone(
    model: Any, bos: int, scorer: Any, texts: Texts, ours: np.ndarray, count: int = 60
) -> tuple[int, float, float]:
    """At most `count` texts scored one at a time with whole logits: how many, their seconds, and
    the largest relative difference of a perplexity."""
    import torch

    count = min(count, len(texts))
    sample = np.random.default_rng(0).choice(len(texts), count, replace=False)
    encoded = [[bos, *scorer._to_common_form(" ".join(texts[n]))] for n in sample]

    def work() -> list[float]:
        values = []
        for ids in encoded:
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0, :-1]
            token_scores = logits.double().log_softmax(-1)[range(len(ids) - 1), ids[1:]]
            values.append(float(torch.exp(-token_scores.mean())))
        return values

    spent, values = time_once(work)
    return count, spent, float(np.abs(np.array(values) / ours[sample] - 1).max())


def names_workload(names: int, descriptors: int) -> dict[str, Any]:
    """Names x descriptors x templates, the descriptor last, on the small shape."""
    from kgbias.probe.names import probe_apx
    from kgbias.probe.sets import TEMPLATES, read_descriptors, read_names

    model, tokenizer, bos = build("small")
    scorer = make_scorer(model, tokenizer)
    sampled_names, words = (
        read_names("globalbias")[:: 400 // names][:names],
        read_descriptors("globalbias"),
    )
    words = [  # the descriptor is last: no full stop
        replace(word, endings=tuple(ending.removesuffix(".") for ending in word.endings))
        for word in words[:: 730 // descriptors][:descriptors]
    ]
    texts = [
        (template.format(name=name), d.endings[t])
        for t, template in enumerate(TEMPLATES)
        for name, _ in sampled_names
        for d in words
    ]
    spent = min(time_once(lambda: probe_apx(scorer, sampled_names, words))[0] for _ in range(2))
    ours = np.concatenate(
        [
            scorer.grid(
                [template.format(name=name) for name, _ in sampled_names],
                [d.endings[t] for d in words],
            ).probes.perplexities.ravel()
            for t, template in enumerate(TEMPLATES)
        ]
    )
    count, alone, gap = score_alone(model, bos, scorer, texts, ours, 100)
    return {
        "probes": len(texts),
        "kgbias_s": round(spent, 2),
        "one_by_one_s_scaled": round(alone * len(texts) / count, 1),
        "speedup": round(alone * len(texts) / count / spent, 1),
        "largest_relative_difference": gap,
    }


def beliefs_workload(name: str, repeats: int) -> dict[str, Any]:
    """Short statements after names in three carriers, as in `kgbias evidence`: many beginnings with
    common beginnings of their own, each followed by one statement's tokens."""
    model, tokenizer, bos = load_model(name)
    scorer = make_scorer(model, tokenizer)
    names, statements = split_parts(GROUPS)[:8], split_parts(STATEMENTS)
    carriers = ("", "What people say about each other:\n\n", "I think that ")
    stems = [f"{carrier}{text}" for text in names for carrier in carriers]
    texts = [(stem, statement) for stem in stems for statement in statements]
    fastest: dict[str, float] = {}
    for _ in range(repeats):
        for method, work in (
            ("kgbias", lambda: scorer.grid(stems, statements)),
            ("lm_eval", lambda: lm_eval_method(model, tokenizer, bos, texts)),
        ):
            fastest[method] = min(time_once(work)[0], fastest.get(method, float("inf")))
    return {
        "model": name,
        "probes": len(texts),
        "probes_per_second": {m: round(len(texts) / s, 1) for m, s in fastest.items()},
        "speedup": round(fastest["lm_eval"] / fastest["kgbias"], 2),
    }


def peak_memory(name: str, method: str) -> int:
    """Peak memory above that of the loaded model, in MB, in a separate process."""
    result = subprocess.run(
        [sys.executable, __file__, "--memory-of", method, "--model", name],
        # Freed memory is returned at once, so no warm-up hides what the work needs.
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(result.stdout.split()[-1])


def print_memory(name: str, method: str) -> None:
    model, tokenizer, bos = load_model(name)
    groups, statements = split_parts(GROUPS), split_parts(STATEMENTS)
    if method == "kgbias":
        work = make_scorer(model, tokenizer).grid
    else:

        def work(groups: list[str], statements: list[str]) -> None:
            texts = [(g, s) for g in groups for s in statements]
            METHODS[method](model, tokenizer, bos, texts)

    work(groups[:1], statements[:1])
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak so far is forgotten
    before = resident_kb("VmRSS")
    work(groups[:8], statements)
    print((resident_kb("VmHWM") - before) // 1024)


def resident_kb(field: str) -> int:
    """Memory of this process in kB: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", help="small, large or a spec; repeatable")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--groups", type=int, default=40, help="how many of the 40 identities")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--names", type=int, nargs=2, default=[20, 100], metavar=("N", "D"))
    parser.add_argument("--without-names", action="store_true")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch

    torch.set_num_threads(arguments.threads)
    names = arguments.model or ["small", "large", "smollm2"]
    if arguments.memory_of:
        print_memory(names[0], arguments.memory_of)
        return
    result: dict[str, Any] = {
        "threads": arguments.threads,
        "models": [compare(name, arguments.repeats, arguments.groups) for name in names],
        "peak_memory_over_the_model_mb": {
            name: {method: peak_memory(name, method) for method in ("evaluate", "kgbias")}
            for name in names
        },
    }
    result["beliefs"] = [beliefs_workload(name, arguments.repeats) for name in names]
    if not arguments.without_names:
        result["names_x_descriptors_x_templates"] = names_workload(*arguments.names)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
