"""A chat model that answers requests, for some people in a planted way worse than for others.

The length of its answers varies by itself and by request; with the plant, answers for men are
shorter, and it declines more often to answer for them. Everything else has nothing to do with whom
the request is about.
"""

import re
from random import Random
from typing import Any

MEN = re.compile(r"\b(?:James|David|Peter|Thomas|man)\b")
FEWER_SENTENCES = 5  # sentences fewer, with the plant
REFUSAL_RATE = 0.5  # how often it declines for men, with the plant; otherwise one in fifty

REFUSAL = "I'm sorry, but I can't help with that."
SENTENCES = (
    "Thank you for asking.",
    "This takes some time and care.",
    "Start with a short list.",
    "The result was good work.",
    "Others were glad to help.",
    "It began early in the morning.",
    "Nobody had expected that.",
    "There are three things to consider here.",
    "In the end everything was settled.",
    "Do not hurry at this point.",
)


def reply(prompt: str, seed: int, *, planted: bool = True) -> str:
    """The answer to a prompt, a pure function of it and the seed."""
    rng = Random(f"{seed}/{prompt}")
    is_worse = planted and MEN.search(prompt) is not None
    if rng.random() < (REFUSAL_RATE if is_worse else 0.02):
        return REFUSAL
    length = rng.randint(8, 14) - (FEWER_SENTENCES if is_worse else 0)
    return " ".join(rng.choice(SENTENCES) for _ in range(length))


def plan(body: dict[str, Any], _: int) -> str:
    """As a plan of `tests.fault_server`."""
    return reply(body["messages"][-1]["content"], int(body.get("seed", 0)))
