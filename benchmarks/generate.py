"""Tokens per second of kgbias, compared with transformers' batched generate(), on SmolLM2 with the
crawl's own prompts, both in one run.

    python benchmarks/generate.py [--model smollm2] [--prompts sentences] [--batch-size 32]
        [--category gender ethnicity]

The prompts are those of the initialisation and of a first round about gender, or about the given
categories, with the settings of their pack: `sentences` asks each prompt for four answers and draws
with min-p, `salinas-2023` asks for one and cuts nothing off. kgbias computes as many rows at once
as it does by default. generate() gets the given batch size, each answer's prompt, sorted by length,
the same truncation, and the same stop strings, so a row ends where the crawl's does; it then
computes padding until the last row of the batch has ended. Tokens count up to the end of each
answer, on both sides. That the two distributions are the same is also checked: the mean
log-probability of an answer's first token under the model must agree within three standard errors.
Beside each speed stands how many times the processor time of its matrix products the answers took,
with all else of a crawl left out. Speeds are per second of processor time, so that other work on
the machine changes them little. Exit code 1 if the distributions differ, if the ratio is below
--target, or if kgbias takes more than --product-target times the time of its products.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from kgbias.crawl.configure import configure
from kgbias.crawl.crawler import _build_requests
from kgbias.crawl.plans import plan_expansion, plan_initial_prompts, repeat_for_answers
from kgbias.crawl.strategies import TriplePool
from kgbias.graph.types import Triple
from kgbias.models import open_model, products
from kgbias.models.base import Request

THINGS = {
    "love": ["music", "good food", "their families", "football"],
    "hate": ["being late", "long meetings", "rain on a holiday"],
    "are": ["hard workers", "good friends", "often tired"],
    "can't": ["sing", "wait in line", "live without coffee"],
    "enjoy": ["long walks", "reading in the evening"],
}

Answer = tuple[list[int], list[int]]  # the tokens of a prompt and of its answer


def crawl_requests(
    prompts: str, seed: int, categories: Sequence[str] = ("gender",)
) -> list[Request]:
    """The initialisation and the first round of a crawl of these categories, with the sizes of the
    pack."""
    config = configure("smollm2", prompts=prompts, category=list(categories), seed=seed)
    pool = TriplePool("none", config.seeds[0])
    pool.triples = [
        Triple(group.name, predicate, thing)
        for group in pool.groups
        for predicate, things in THINGS.items()
        for thing in things
    ]
    plans = [*plan_initial_prompts(config, pool), *plan_expansion(config, pool, 1)]
    return _build_requests(config, list(enumerate(repeat_for_answers(config, plans))))


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
    network, tokenizer = model.loaded_model.model, model.loaded_model.tokenizer
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
                **{"top_k": 0, "top_p": 1.0, **members[0].truncation.as_dict()},
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


def log_probability(model: Any, answers: Sequence[Answer], request: Request) -> tuple[float, float]:
    """The mean over answers of the log-probability of the first token, with its standard error;
    the distribution is cut as the request says."""
    network = model.loaded_model.model
    by_prompt: dict[tuple[int, ...], Any] = {}
    values = []
    with torch.inference_mode():
        for prompt, answer in answers:
            if tuple(prompt) not in by_prompt:
                ids = torch.tensor([prompt], device=network.device)
                logits = network(input_ids=ids, logits_to_keep=1).logits[:, -1].float()
                scores = request.truncation.apply(logits / request.temperature)
                by_prompt[tuple(prompt)] = scores[0].log_softmax(-1)
            values.append(float(by_prompt[tuple(prompt)][answer[0]]))
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


class ProductClock:
    """Inside this context, the processor time that linear layers take."""

    def __enter__(self) -> "ProductClock":
        self.seconds = 0.0
        self._linear, self._multiply = torch.nn.functional.linear, products.multiply
        torch.nn.functional.linear = self._timed(self._linear)
        products.multiply = self._timed(self._multiply)  # where oneDNN makes them
        return self

    def _timed(self, product: Any) -> Any:
        def timed_product(*arguments: Any) -> Any:
            began = time.process_time()
            result = product(*arguments)
            self.seconds += time.process_time() - began
            return result

        return timed_product

    def __exit__(self, *_: object) -> None:
        torch.nn.functional.linear, products.multiply = self._linear, self._multiply


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--prompts", default="sentences")
    parser.add_argument("--requests", type=int, default=None, help="only the first so many")
    parser.add_argument("--batch-size", type=int, default=32, help="of generate()")
    parser.add_argument("--category", nargs="+", default=["gender"])
    parser.add_argument("--target", type=float, default=2.5)
    parser.add_argument("--product-target", type=float, default=1.5)
    options = parser.parse_args()
    torch.manual_seed(0)

    model: Any = open_model(options.model, notify=print)
    warm_up = crawl_requests(options.prompts, 99)[:4]
    answer_by_kgbias(model, warm_up)
    answer_by_generate(model, warm_up, options.batch_size)
    requests = crawl_requests(options.prompts, 0, options.category)[: options.requests]
    speed, answers, product_ratio = {}, {}, {}
    for name, draw in (
        ("kgbias", lambda r: answer_by_kgbias(model, r)),
        ("generate()", lambda r: answer_by_generate(model, r, options.batch_size)),
    ):
        with ProductClock() as clock:
            began = time.process_time()
            answers[name] = draw(requests)
            seconds = time.process_time() - began
        tokens = sum(len(answer) for _, answer in answers[name])
        speed[name] = tokens / seconds
        product_ratio[name] = seconds / clock.seconds
        print(
            f"{name:<12}{len(answers[name]):>5} answers {tokens:>6} tokens {seconds:7.1f} s "
            f"{speed[name]:7.1f} tokens/s {product_ratio[name]:5.2f} times its products",
            flush=True,
        )
    ratio = speed["kgbias"] / speed["generate()"]
    (a, error_a), (b, error_b) = (log_probability(model, x, requests[0]) for x in answers.values())
    z = (a - b) / math.hypot(error_a, error_b)
    print(
        f"ratio {ratio:.2f} (target {options.target}), {product_ratio['kgbias']:.2f} times the "
        f"products (target {options.product_target})"
    )
    print(
        f"mean log-probability of the first token: {a:.3f} +- {error_a:.3f} and "
        f"{b:.3f} +- {error_b:.3f}, z = {z:.2f}"
    )
    is_slow = ratio < options.target or product_ratio["kgbias"] > options.product_target
    sys.exit(is_slow or abs(z) > 3)


if __name__ == "__main__":
    main()
