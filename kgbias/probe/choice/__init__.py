"""Forced choice: which group is a statement about, for models that give no probabilities.

- `config`: how a model is made to choose, and which option an answer names.
- `ask`: the questions, their design and answers, and the edges written from them.
- `result`: shares, base rates and lifts, with their intervals.

Models are asked through the answer log. The order of the options follows from the statement and the
seed alone. The choices of a run are written as a whole, in place of the previous ones, once all
answers are in. A choice is another kind of evidence than a probability, and no verdict rests on it.
"""

from kgbias.probe.choice.ask import ChoicePrice, choice_price, choose, first_questions, plan_choices
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
    "first_questions",
    "plan_choices",
]
