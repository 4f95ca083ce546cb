"""Forced choice: which group is a statement about, where a model gives no probabilities.

- `config`: how a model is made to choose.
- `design`: which groups a question offers, in which order.
- `ask`: the questions, their answers, and the edges that they become.
- `read`: what an answer names.
- `figures`: shares, base rates and lifts, with their intervals.
"""

from kgbias.probe.choice.ask import ChoicePrice, choice_price, choose, plan_choices
from kgbias.probe.choice.config import ChoiceConfig, configure_choice
from kgbias.probe.choice.result import CategoryChoices, RunChoices

__all__ = [
    "CategoryChoices",
    "ChoiceConfig",
    "ChoicePrice",
    "RunChoices",
    "choice_price",
    "choose",
    "configure_choice",
    "plan_choices",
]
