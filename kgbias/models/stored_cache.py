"""What the rows of a batch have read, as a cache of transformers over storage that stays where it
is: a new token is written into it, where transformers' own cache copies everything."""

from collections.abc import Sequence
from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer


class _StoredLayer(DynamicLayer):  # type: ignore[misc]  # transformers is untyped
    """The first rows of a layer's storage, from one column to another. `stored` are keys and
    values, each [places, heads, columns, width]."""

    def __init__(self, stored: tuple[Any, Any], rows: int, start: int, end: int) -> None:
        super().__init__()
        self._stored, self._rows, self._start, self._end = stored, rows, start, end
        self.dtype, self.device = stored[0].dtype, stored[0].device
        self.keys, self.values = (x[:rows, :, start:end] for x in stored)
        self.is_initialized = True

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """See `DynamicLayer.update`."""
        end = self._end + key_states.shape[-2]
        for stored, states in zip(self._stored, (key_states, value_states), strict=True):
            stored[: self._rows, :, self._end : end] = states
        self.keys, self.values = (x[: self._rows, :, self._start : end] for x in self._stored)
        self._end = end
        return self.keys, self.values


def stored_cache(
    layers: Sequence[tuple[Any, Any]], rows: int, start: int, end: int
) -> DynamicCache:
    """The cache of a model's layers: the columns from `start` to `end` of the first rows of each.
    The columns after `end` take what is read next."""
    cache = DynamicCache()
    cache.layers = [_StoredLayer(stored, rows, start, end) for stored in layers]
    return cache
