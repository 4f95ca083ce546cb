"""The executors beside this machine's own: a backend or another package adds one by an entry point
of the group "kgbias.executors", whose name begins its spec."""

from dataclasses import dataclass

from kgbias.io.plugins import PluginTable


@dataclass(frozen=True, slots=True)
class ExecutorKind:
    """An executor.

    Attributes:
        opener: the function that opens it, as "module:name": it is given the address of the spec
            ("" for none) and a `Progress`, and returns a context manager of an
            `kgbias.parallel.work.Executor`.
        spelling: the forms of its spec, for a message.
    """

    opener: str
    spelling: str


EXECUTORS: PluginTable[ExecutorKind] = PluginTable(
    "executor", ExecutorKind, {}, path_fields=("opener",)
)
"""The kinds of executors, by what their specs begin with."""
