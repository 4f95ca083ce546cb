"""What `map` asks of a model that gives no probabilities: to choose between groups."""

from typing import Any

from kgbias.methods.choice import choose
from kgbias.study.run import Run


def count_min_questions(run: Run, model: str) -> int:
    """The number of questions about one statement of each category."""
    return choose(run, model, sample=1, dry_run=True).requests


def choose_within(run: Run, model: str, most: int, **options: Any) -> str:
    """Have the model choose for about as many statements as `most` questions allow, and return how
    many answers named a group."""
    sample = max(1, most // max(1, count_min_questions(run, model)))
    outcomes = choose(run, model, sample=sample, **options).outcomes
    return f"{outcomes['read']:,} of {outcomes.total():,} answers named one"
