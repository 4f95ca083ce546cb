"""Kinds of runs that methods make by asking a model, beside crawls and imports.

A method or another package adds a kind by an entry point of the group "kgbias.runs", whose name is
the kind's, and the name of its list in a study's file.
"""

from dataclasses import dataclass

from kgbias.io.plugins import PluginTable


@dataclass(frozen=True, slots=True)
class RunKind:
    """A kind of run. Its functions are imported when they are called; each is given as
    "module:function".

    Attributes:
        write: asks a model, given a study, the model and by name `name` (of the run) and options;
            returns the run.
        price: what `write` would ask, given the model and options, as a
            `kgbias.graph.generation_run.CostEstimate`.
        findings: the table of a study's file that says what the runs of this kind have to say;
            "" for none.
        find: says it, given a run and options; its result has `as_dict`.
        suggest: where crawls are declined, what to ask instead about groups, given the groups and
            a folder: yields `Suggestion`s. "" for nothing.
        has_statements: whether such runs have statements, and not answers alone.
    """

    write: str
    price: str
    findings: str = ""
    find: str = ""
    suggest: str = ""
    has_statements: bool = True


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A call that asks about some groups in another way than a crawl does.

    Attributes:
        arguments: options of the kind's `write`, and of its command.
        note: what to look at first; "" for nothing.
    """

    arguments: dict[str, str | list[str]]
    note: str = ""


RUN_KINDS: PluginTable[RunKind] = PluginTable(
    "run", RunKind, {}, path_fields=("write", "price", "find", "suggest")
)
"""Every such kind, by name."""
