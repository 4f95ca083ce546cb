"""The same model in vLLM and without it: answers, perplexities, processor time, prefix cache.

    python benchmarks/engines.py --model ORG/MODEL-or-FOLDER [--requests 64] [--dtype float32]

Requires vLLM (docs/how-to/models.md). Prompts are those of a first round; processor time is
that of all threads of this process, after the model has answered once.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kgbias.backends.vllm.engine import VLLMEngine
from kgbias.models import open_model, open_scorer, unload
from kgbias.models.base import Completer, Completion, Request

GROUPS = ("women", "men", "Buddhists", "nurses", "old people", "poor people", "Nigerians", "Swedes")
ENDS = ("are", "love to", "are often seen as", "cannot", "are good at", "hate", "want", "live in")
PREFIX = " ".join(f"People of kind {n} love to cook, sing and walk in the rain." for n in range(40))


def make_prompts(count: int) -> list[str]:
    """The examples of a crawl, and a group with the beginning of a sentence."""
    examples = "Teachers are patient.\nFarmers love to rise early.\n"
    pairs = [f"{examples}{group} {end}" for end in ENDS for group in GROUPS]
    return [pairs[n % len(pairs)] for n in range(count)]


def time_work(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def complete_all(model: Completer, requests: list[Request]) -> list[Completion]:
    completions: dict[int, Completion] = {}
    for batch in model.complete(requests):
        completions |= dict(batch)
    return [completions[n] for n in range(len(requests))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--dtype", default="float32")
    arguments = parser.parse_args()
    cached_tokens: list[tuple[int, int]] = []
    run = VLLMEngine.run

    def count_cached(self: VLLMEngine, jobs: Any) -> Any:
        for ended in run(self, jobs):
            cached_tokens.extend((o.num_cached_tokens, len(o.prompt_token_ids)) for _, o in ended)
            yield ended

    VLLMEngine.run = count_cached  # type: ignore[method-assign]
    texts = [f"{group} {end} kind." for group in GROUPS for end in ENDS]
    greedy = [Request(p, 0, 0, 16, ("\n",)) for p in make_prompts(arguments.requests)]
    sampled = [
        Request(p, n, 0.8, 16, ("\n",)) for n, p in enumerate(make_prompts(arguments.requests))
    ]
    greedy_answers, perplexities = {}, {}
    for kind in ("vllm", "hf"):
        unload()
        model = open_model(f"{kind}:{arguments.model}", dtype=arguments.dtype)
        complete_all(model, greedy[:1])
        greedy_answers[kind], greedy_seconds = time_work(
            lambda model=model: complete_all(model, greedy)
        )
        sampled_answers, sampled_seconds = time_work(
            lambda model=model: complete_all(model, sampled)
        )
        print(
            f"{kind}: {len(greedy)} answers {greedy_seconds:.1f} s, as many drawn "
            f"{sampled_seconds:.1f} s"
        )
        alone = [complete_all(model, [request])[0] for request in sampled[:16]]
        same = sum(a.text == b.text for a, b in zip(sampled_answers, alone, strict=False))
        print(f"{kind}: {same} of {len(alone)} drawn answers the same when asked alone")
        if kind == "vllm":
            for name, prompt in (("shared", PREFIX + " Men {}"), ("none shared", "{} " + PREFIX)):
                cached_tokens.clear()
                prefix_requests = [Request(prompt.format(n), 0, 0, 4) for n in range(16)]
                _, seconds = time_work(
                    lambda prefix_requests=prefix_requests, model=model: complete_all(
                        model, prefix_requests
                    )
                )
                cached_count, token_count = np.sum(cached_tokens, axis=0)
                print(
                    f"vllm: 16 prompts of {token_count // 16} tokens, {name}: {seconds:.1f} s, "
                    f"{cached_count} cached"
                )
        scorer = open_scorer(f"{kind}:{arguments.model}", dtype=arguments.dtype)
        perplexities[kind], seconds = time_work(
            lambda scorer=scorer: scorer.score(texts).perplexities
        )
        print(f"{kind}: {len(texts)} texts scored {seconds:.1f} s")
    same = sum(
        a.text == b.text for a, b in zip(greedy_answers["vllm"], greedy_answers["hf"], strict=True)
    )
    gap = np.max(np.abs(perplexities["vllm"] / perplexities["hf"] - 1))
    print(f"{same} of {len(greedy)} most probable answers are the same")
    print(f"perplexities differ by {gap:.1e} at most, relative")


if __name__ == "__main__":
    main()
