"""What `map` asks a model that gives no probabilities, in place of finding what it believes.

A method or another package adds it by an entry point of the group "kgbias.substitutes"; our own
comes first, and one of them is asked.
"""

from dataclasses import dataclass

from kgbias.io.plugins import PluginTable


@dataclass(frozen=True, slots=True)
class Substitute:
    """What is asked instead. Its functions are imported when they are called; each is given as
    "module:function".

    Attributes:
        does: what it has the model do, as part of a sentence.
        ask: given a run, the model's spec, how many questions there may be at most, and by name how
            to open the model and its `form`; keeps what it finds in the store, and returns how the
            model answered, as the end of a sentence.
        min_questions: the fewest questions that it could ask, given a run and the model's spec.
        call, command: the same by hand, with {run} and {model}.
    """

    does: str
    ask: str
    min_questions: str
    call: str
    command: str


SUBSTITUTES: PluginTable[Substitute] = PluginTable(
    "substitute", Substitute, {}, path_fields=("ask", "min_questions")
)
"""Every substitute, by name."""
