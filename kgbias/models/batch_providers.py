"""Providers that take requests in batches, which they answer within a day, for less.

A backend or another package adds one by an entry point of the group "kgbias.providers", whose name
is the kind of the model's spec. `kgbias.graph.answers` asks for, notes and collects batches.
"""

from dataclasses import dataclass
from typing import Any

from kgbias.io.plugins import PluginTable


@dataclass(frozen=True, slots=True)
class BatchProvider:
    """A provider that takes batches.

    Attributes:
        batches: the class of a model's batches there, as "module:name"
            (`kgbias.backends.batches.base.Batches`); it is given the model.
    """

    batches: str


BATCH_PROVIDERS: PluginTable[BatchProvider] = PluginTable(
    "provider", BatchProvider, {}, path_fields=("batches",)
)
"""The providers, by the kind of their models."""


def open_batches(kind: str, model: Any) -> Any:
    """The batches of a model of this kind. Raises PluginError if what handles them is missing."""
    return BATCH_PROVIDERS.import_part(kind, BATCH_PROVIDERS[kind].batches)(model)
