"""Tokens per second of kgbias, compared with transformers' batched generate(), on SmolLM2 with the
crawl's own prompts, both in one run.

    python benchmarks/generate.py [--model smollm2] [--batch-size 32] [--rounds 1]

Both draw from the same distribution: softmax(logits / 0.8), nothing cut off. generate() gets the
same batch size, the prompts sorted by length, and the same stop strings, so a row ends where the
crawl's does; it then computes padding until the last row of the batch has ended. Tokens count up to
the end of each answer, on both sides. That the two distributions are the same is also checked: the
mean log-probability of an answer's tokens under the model must agree within three standard errors.
Exit code 1 if it does not, or if the ratio is below --target.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import _build_request
from kgbias.crawl.plans import plan_expansion, plan_initial_prompts
from kgbias.crawl.seeds import choose_seeds
from kgbias.crawl.strategies import TriplePool
from kgbias.graph.types import Triple
from kgbias.models import open_model
from kgbias.models.base import Request

THINGS = {
    "love": ["music", "good food", "their families", "football"],
    "hate": ["being late", "long meetings", "rain on a holiday"],
    "are": ["hard workers", "good friends", "often tired"],
    "can't": ["sing", "wait in line", "live without coffee"],
    "enjoy": ["long walks", "reading in the evening"],
}

Answer = tuple[list[int], list[int]]  # the tokens of a prompt and of its answer


def crawl_requests(seed: int) -> list[Request]:
    """The initialisation and the first round of a crawl of gender identity, with the paper's sizes:
    120 requests."""
    config = CrawlConfig(seeds=tuple(choose_seeds("any", ["gender"])), seed=seed)
    pool = TriplePool("none", config.seeds[0])
    pool.triples = [
        Triple(group.name, predicate, thing)
        for group in pool.groups
        for predicate, things in THINGS.items()
        for thing in things
    ]
    plans = [*plan_initial_prompts(config, pool), *plan_expansion(config, pool, 1)]
    return [_build_request(config, plan, 0) for plan in plans]


def answer_by_kgbias(model: Any, requests: Sequence[Request]) -> list[Answer]:
    answers: list[Answer] = []
    sampler = model._sampler
    extend = sampler._extend_answer

    def record_row(row: Any, token: int) -> Any:
        finish = extend(row, token)
        if finish:
            ended = token in sampler._end_tokens
            answers.append((row.prompt, [*row.answer, token] if ended else list(row.answer)))
        return finish

    sampler._extend_answer = record_row
    for _ in model.complete(requests):
        pass
    sampler._extend_answer = extend
    return answers


def answer_by_generate(model: Any, requests: Sequence[Request], batch_size: int) -> list[Answer]:
    network, tokenizer = model.loaded.model, model.loaded.tokenizer
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    ends = network.generation_config.eos_token_id
    ends = set(ends if isinstance(ends, list) else [ends]) | {tokenizer.eos_token_id}
    answers: list[Answer] = []
    groups: dict[tuple[int, tuple[str, ...]], list[Request]] = {}
    for request in requests:  # a call has one limit and one set of stop strings
        groups.setdefault((request.max_tokens, request.stop), []).append(request)
    for (limit, stop), members in groups.items():
        members.sort(key=lambda request: len(str(request.prompt)))
        for start in range(0, len(members), batch_size):
            prompts = [str(request.prompt) for request in members[start : start + batch_size]]
            inputs = tokenizer(prompts, return_tensors="pt", padding=True).to(network.device)
            output = network.generate(
                **inputs,
                do_sample=True,
                temperature=members[0].temperature,
                top_k=0,
                top_p=1.0,
                max_new_tokens=limit,
                stop_strings=list(stop),
                tokenizer=tokenizer,
                pad_token_id=tokenizer.pad_token_id,
            )
            width = inputs["input_ids"].shape[1]
            for row, ids, mask in zip(
                output, inputs["input_ids"], inputs["attention_mask"], strict=True
            ):
                answer = _cut_answer(row[width:].tolist(), ends, stop, tokenizer)
                answers.append((ids[mask.bool()].tolist(), answer))
    return answers


def _cut_answer(
    tokens: list[int], ends: set[int], stop: Sequence[str], tokenizer: Any
) -> list[int]:
    """The tokens up to the end of text or the first stop string, as the crawl counts them."""
    for n, token in enumerate(tokens, 1):
        if token in ends or any(s in tokenizer.decode(tokens[:n]) for s in stop):
            return tokens[:n]
    return tokens


def log_probability(
    model: Any, answers: Sequence[Answer], temperature: float
) -> tuple[float, float]:
    """The mean over answers of the mean log-probability of an answer's tokens, with its standard
    error. Only the first token counts, because later ones depend on it."""
    network = model.loaded.model
    values = []
    with torch.inference_mode():
        for prompt, answer in answers:
            ids = torch.tensor([prompt], device=network.device)
            logits = network(input_ids=ids).logits[0, -1].float() / temperature
            values.append(float(logits.log_softmax(-1)[answer[0]]))
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--target", type=float, default=1.4)
    options = parser.parse_args()
    torch.manual_seed(0)

    model: Any = open_model(options.model, batch_size=options.batch_size, notify=print)
    warm_up = crawl_requests(99)[:4]
    answer_by_kgbias(model, warm_up)
    answer_by_generate(model, warm_up, options.batch_size)
    speed, answers = {}, {}
    for name, draw in (
        ("kgbias", lambda r: answer_by_kgbias(model, r)),
        ("generate()", lambda r: answer_by_generate(model, r, options.batch_size)),
    ):
        round_answers: list[Answer] = []
        began, cpu = time.perf_counter(), time.process_time()
        for seed in range(options.rounds):
            round_answers += draw(crawl_requests(seed))
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        tokens = sum(len(answer) for _, answer in round_answers)
        speed[name], answers[name] = tokens / wall, round_answers
        print(
            f"{name:<12}{len(round_answers):>5} answers {tokens:>6} tokens {wall:7.1f} s "
            f"{tokens / wall:7.1f} tokens/s ({tokens / cpu:.1f} a CPU second)",
            flush=True,
        )
    ratio = speed["kgbias"] / speed["generate()"]
    (a, error_a), (b, error_b) = (log_probability(model, x, 0.8) for x in answers.values())
    z = (a - b) / math.hypot(error_a, error_b)
    print(f"ratio {ratio:.2f} (target {options.target})")
    print(
        f"mean log-probability of the first token: {a:.3f} +- {error_a:.3f} and "
        f"{b:.3f} +- {error_b:.3f}, z = {z:.2f}"
    )
    sys.exit(ratio < options.target or abs(z) > 3)


if __name__ == "__main__":
    main()
