"""The same model in vLLM and without it: answers, perplexities, processor time, prefix cache.

    python benchmarks/engines.py --model ORG/MODEL-or-FOLDER [--requests 64] [--dtype float32]

Requires vLLM (docs/how-to/servers.md). Prompts are those of a first round; processor time is
that of all threads of this process, after the model has answered once.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kgbias.models import open_model, open_scorer, unload
from kgbias.models.base import Completer, Completion, Request
from kgbias.models.vllm_engine import VLLMEngine

GROUPS = ("women", "men", "Buddhists", "nurses", "old people", "poor people", "Nigerians", "Swedes")
ENDS = ("are", "love to", "are often seen as", "cannot", "are good at", "hate", "want", "live in")
PREFIX = " ".join(f"People of kind {n} love to cook, sing and walk in the rain." for n in range(40))


def prompts(count: int) -> list[str]:
    """The examples of a crawl, and a group with the beginning of a sentence."""
    shown = "Teachers are patient.\nFarmers love to rise early.\n"
    pairs = [f"{shown}{group} {end}" for end in ENDS for group in GROUPS]
    return [pairs[n % len(pairs)] for n in range(count)]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def answers(model: Completer, requests: list[Request]) -> list[Completion]:
    found: dict[int, Completion] = {}
    for batch in model.complete(requests):
        found |= dict(batch)
    return [found[n] for n in range(len(requests))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--dtype", default="float32")
    given = parser.parse_args()
    cached: list[tuple[int, int]] = []
    run = VLLMEngine.run

    def counted(self: VLLMEngine, jobs: Any) -> Any:
        for ended in run(self, jobs):
            cached.extend((o.num_cached_tokens, len(o.prompt_token_ids)) for _, o in ended)
            yield ended

    VLLMEngine.run = counted  # type: ignore[method-assign]
    texts = [f"{group} {end} kind." for group in GROUPS for end in ENDS]
    greedy = [Request(p, 0, 0, 16, ("\n",)) for p in prompts(given.requests)]
    drawn = [Request(p, n, 0.8, 16, ("\n",)) for n, p in enumerate(prompts(given.requests))]
    said, scored = {}, {}
    for kind in ("vllm", "hf"):
        unload()
        model = open_model(f"{kind}:{given.model}", dtype=given.dtype)
        answers(model, greedy[:1])
        said[kind], first = timed(lambda model=model: answers(model, greedy))
        some, second = timed(lambda model=model: answers(model, drawn))
        print(f"{kind}: {len(greedy)} answers {first:.1f} s, as many drawn {second:.1f} s")
        alone = [answers(model, [request])[0] for request in drawn[:16]]
        same = sum(a.text == b.text for a, b in zip(some, alone, strict=False))
        print(f"{kind}: {same} of {len(alone)} drawn answers the same when asked alone")
        if kind == "vllm":
            for name, prompt in (("shared", PREFIX + " Men {}"), ("none shared", "{} " + PREFIX)):
                cached.clear()
                asked = [Request(prompt.format(n), 0, 0, 4) for n in range(16)]
                _, spent = timed(lambda asked=asked, model=model: answers(model, asked))
                kept, read = np.sum(cached, axis=0)
                print(
                    f"vllm: 16 prompts of {read // 16} tokens, {name}: {spent:.1f} s, {kept} cached"
                )
        scorer = open_scorer(f"{kind}:{given.model}", dtype=given.dtype)
        scored[kind], spent = timed(lambda scorer=scorer: scorer.score(texts).perplexities)
        print(f"{kind}: {len(texts)} texts scored {spent:.1f} s")
    same = sum(a.text == b.text for a, b in zip(said["vllm"], said["hf"], strict=True))
    gap = np.max(np.abs(scored["vllm"] / scored["hf"] - 1))
    print(f"{same} of {len(greedy)} most probable answers are the same")
    print(f"perplexities differ by {gap:.1e} at most, relative")


if __name__ == "__main__":
    main()
