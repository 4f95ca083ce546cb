"""Loading weights of transformers, all of them."""

from typing import Any

from kgbias.errors import ModelError


def load_weights(auto: Any, source: str, what: str, **options: Any) -> Any:
    """A model of a class of transformers, from a folder or id.

    What a checkpoint lacks, transformers fills with random numbers and goes on; no figure of such a
    model would mean anything. Raises ModelError, naming what is not there; `what` is what the model
    was to be.
    """
    model, loading = auto.from_pretrained(source, output_loading_info=True, **options)
    if lost := sorted(loading["missing_keys"]):
        raise ModelError(f"{source} lacks weights of a {what}: {lost[0]}")
    return model
