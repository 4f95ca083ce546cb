"""How fast probes are scored on a GPU in bfloat16: tokens per second and the share of its peak.

    python benchmarks/perplexity_gpu.py [--layers 24 --width 2048] [--model SPEC] [--vllm]

40 identities x 50 statements (those of benchmarks/perplexity.py), each statement in --copies
versions, on a Llama with random weights and a vocabulary of 50,257, or on --model. In one run:

- plain: batches sorted by length, padded, the cross entropy of the whole logits;
- vllm (--vllm, with --model, if installed): its prompt log-probabilities;
- kgbias: the packed tree.

Tokens per second counts all tokens of the texts, shared or not. The share of the peak is
2 x weights of matrices x tokens fed / seconds, over what a large matrix product reached in the same
run. --device cpu runs it in float32 (give it a small shape), to check that it works.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from perplexity import GROUPS, STATEMENTS, make_scorer, read_model, split_parts

PEAK_SIZE = {"cuda": 8192, "cpu": 1024}
DTYPE = {"cuda": torch.bfloat16, "cpu": torch.float32}


def build(layers: int, width: int, device: str) -> tuple[Any, Any]:
    """A random Llama of that shape, with the tokenizer of SmolLM2."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from kgbias.models import resolve

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50_257,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 128),
        bos_token_id=0,
        eos_token_id=0,
    )
    with torch.device(device):
        model = LlamaForCausalLM(config).to(DTYPE[device]).eval()
    return model, AutoTokenizer.from_pretrained(resolve("smollm2").location())


def plain_method(model: Any, rows: list[list[int]], batch: int) -> np.ndarray:
    """Mean log-probabilities, in padded batches of similar lengths."""
    means = np.empty(len(rows))
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
    for start in range(0, len(order), batch):
        batch_rows = order[start : start + batch]
        longest = max(len(rows[n]) for n in batch_rows)
        ids = torch.zeros((len(batch_rows), longest), dtype=torch.int64)
        mask = torch.zeros_like(ids)
        for place, n in enumerate(batch_rows):
            ids[place, : len(rows[n])] = torch.tensor(rows[n])
            mask[place, : len(rows[n])] = 1
        ids, mask = ids.to(model.device), mask.to(model.device)
        with torch.inference_mode():
            logits = model(ids, attention_mask=mask).logits[:, :-1]
            loss = torch.nn.functional.cross_entropy(
                logits.float().transpose(1, 2), ids[:, 1:], reduction="none"
            )
            kept_mask = mask[:, 1:]
            means[batch_rows] = (
                (-(loss * kept_mask).sum(1) / kept_mask.sum(1)).double().cpu().numpy()
            )
    return means


def vllm_method(spec: str, rows: list[list[int]]) -> Callable[[], np.ndarray]:
    """vLLM's prompt log-probabilities; the engine is loaded before the clock starts."""
    from vllm import LLM, SamplingParams  # type: ignore[import-not-found]

    engine = LLM(spec.removeprefix("hf:"), dtype="bfloat16", enable_prefix_caching=True)
    sampling = SamplingParams(max_tokens=1, prompt_logprobs=0, temperature=0.0)
    prompts = [{"prompt_token_ids": ids} for ids in rows]

    def work() -> np.ndarray:
        means = []
        for ids, answer in zip(rows, engine.generate(prompts, sampling), strict=True):
            log_probabilities = answer.prompt_logprobs[1:]
            token_scores = [
                position_scores[t].logprob
                for position_scores, t in zip(log_probabilities, ids[1:], strict=True)
            ]
            means.append(float(np.mean(token_scores)))
        return np.array(means)

    return work


def time_work(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The fastest of some runs; the results are on the host, so the device is done."""
    result = work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def peak_rate(device: str) -> float:
    """Operations per second of a large matrix product."""
    size = PEAK_SIZE[device]
    a = torch.randn(size, size, device=device, dtype=DTYPE[device])

    def work() -> float:
        product = a
        for _ in range(4):
            product = a @ a
        return float(product[0, 0])

    return 4 * 2 * size**3 / time_work(work, 3)[0]


def count_fed(scorer: Any, rows: list[list[int]]) -> int:
    """The number of tokens in the packed trees."""
    from kgbias.models.score.engine import join_trees, pack_trees

    size = scorer.engine._row_nodes
    return sum(
        len(t.tokens) for t in join_trees(list(pack_trees([tuple(r) for r in rows], size)), size)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", metavar="SPEC")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--copies", type=int, default=20, help="versions of each statement")
    parser.add_argument("--batch", type=int, default=512, help="texts at once of the plain method")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--vllm", action="store_true")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no GPU here: use --device cpu with a small shape to check that it works")
    if options.model:
        model, tokenizer = read_model(options.model, DTYPE[options.device])
        model = model.to(options.device)
    else:
        model, tokenizer = build(options.layers, options.width, options.device)
    scorer = make_scorer(model, tokenizer)
    groups = split_parts(GROUPS)
    statements = [
        f"{statement} on day {n}" if n else statement
        for statement in split_parts(STATEMENTS)
        for n in range(options.copies)
    ]
    bos = int(tokenizer.bos_token_id)
    rows = [[bos, *scorer._tokenise(f"{g} {s}")] for g in groups for s in statements]
    works: dict[str, Callable[[], Any]] = {
        "plain": lambda: plain_method(model, rows, options.batch),
        "kgbias": lambda: scorer.grid(groups, statements),
    }
    if options.vllm:
        works["vllm"] = vllm_method(options.model, rows)
    timings = {name: time_work(work, options.repeats) for name, work in works.items()}
    grid = timings["kgbias"][1].probes
    ours = (grid.log_likelihoods / grid.tokens).ravel()
    tokens = sum(len(row) - 1 for row in rows)
    matrices = sum(p.numel() for p in model.parameters() if p.ndim == 2)
    if model.get_input_embeddings().weight is not model.get_output_embeddings().weight:
        matrices -= model.get_input_embeddings().weight.numel()  # looked up, not multiplied
    fed_tokens = {"kgbias": count_fed(scorer, rows), "plain": tokens, "vllm": tokens}
    peak_flops = peak_rate(options.device)
    result = {
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "torch": torch.__version__,
        "weights_in_matrices": matrices,
        "tier": scorer.convention.tier,
        "probes": len(rows),
        "tokens": tokens,
        "tokens_fed": {name: fed_tokens[name] for name in works},
        "peak_tflops": round(peak_flops / 1e12, 2),
        "seconds": {name: round(spent, 3) for name, (spent, _) in timings.items()},
        "tokens_per_second": {name: round(tokens / s) for name, (s, _) in timings.items()},
        "share_of_peak": {
            name: round(2 * matrices * fed_tokens[name] / spent / peak_flops, 3)
            for name, (spent, _) in timings.items()
        },
        "speedup": {
            name: round(spent / timings["kgbias"][0], 2) for name, (spent, _) in timings.items()
        },
        "largest_difference_nats_a_token": {
            name: float(np.abs(found - ours).max())
            for name, (_, found) in timings.items()
            if name != "kgbias"
        },
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
