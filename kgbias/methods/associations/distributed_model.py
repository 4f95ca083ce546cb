"""A model that gives vectors and predicts words, here or in an executor's workers
(`kgbias.parallel`), with the same results for the same pieces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, KgbiasError, UsageError
from kgbias.models.base import ModelInfo, Settings
from kgbias.models.embed import (
    Encoder,
    Encoding,
    Span,
    VectorSource,
    iter_text_pieces,
    open_encoder,
)
from kgbias.models.predict import (
    CausalPredictor,
    FilledTemplate,
    MaskedPredictor,
    Prediction,
    iter_sentence_pieces,
    open_predictor,
)
from kgbias.models.spec import resolve_weights
from kgbias.models.vectors import VectorLookup
from kgbias.parallel import Executor
from kgbias.parallel.local import count_torch_threads

if TYPE_CHECKING:
    from kgbias.models.in_memory import InMemoryModel, InMemoryVectors


class LanguageModel:
    """The model of a spec, to give vectors and, if it can, to predict words; each is loaded when
    first asked. The parameters are those of `open_encoder`."""

    def __init__(self, spec: str, *, cache: bool = True, **open_options: Any) -> None:
        self.encoder = open_encoder(spec, cache=cache, **open_options)
        self._spec, self._opening = spec, open_options
        self._predictors: dict[str, MaskedPredictor | CausalPredictor] = {}

    def predictor(self, kind: str = "auto") -> MaskedPredictor | CausalPredictor:
        """See `open_predictor`."""
        if kind not in self._predictors:
            self._predictors[kind] = open_predictor(self._spec, kind=kind, **self._opening)
        return self._predictors[kind]


class DistributedModel:
    """As `LanguageModel`, of which each worker opens its own. This process keeps vectors on disk;
    `notify` is not told what happens elsewhere."""

    def __init__(
        self, executor: Executor, spec: str, *, cache: bool = True, **open_options: Any
    ) -> None:
        open_options.pop("notify", None)
        self._workers = _ModelWorkers(executor, spec, open_options)
        self.encoder = DistributedEncoder(self._workers, spec, cache, open_options)

    def predictor(self, kind: str = "auto") -> "DistributedPredictor":
        """See `open_predictor`."""
        return DistributedPredictor(self._workers, kind)


def open_language_model(
    spec: "str | InMemoryModel",
    executor: Executor | None = None,
    *,
    cache: bool = True,
    **open_options: Any,
) -> "LanguageModel | DistributedModel | InMemoryVectors":
    """The model of a spec, here or in an executor's workers, or one that the program holds."""
    if not isinstance(spec, str):
        if executor is not None:
            raise UsageError("`executor` opens models itself: name a spec instead of an open one")
        return spec.vectors(cache=cache)
    open_options["cache"] = cache
    if executor is None:
        return LanguageModel(spec, **open_options)
    return DistributedModel(executor, spec, **open_options)


class DistributedEncoder(Encoder):
    """An encoder whose texts are read by workers."""

    def __init__(
        self, workers: "_ModelWorkers", spec: str, cache: bool, open_options: Mapping[str, Any]
    ) -> None:
        super().__init__(spec, resolve_weights(spec), cache=cache, **open_options)
        self._workers = workers

    def _compute(
        self, spans: Sequence[Span], places: Sequence[VectorSource]
    ) -> Iterator[dict[tuple[Span, VectorSource], NDArray[np.float32]]]:
        arguments = [(piece, places) for piece in iter_text_pieces(spans)]
        for _, vectors in self._workers.ask_each("read", arguments):
            yield vectors

    def find(self, words: Iterable[str]) -> VectorLookup:
        return cast(VectorLookup, self._workers.ask_one("find", list(words)))

    def is_token(self, word: str) -> bool:
        return bool(self._workers.ask_one("is_token", word))

    @cached_property
    def sentence_encoding(self) -> Encoding:
        return cast(Encoding, self._workers.ask_one("sentence_encoding"))

    @cached_property
    def sentence_encodings(self) -> tuple[Encoding, ...]:
        return cast(tuple[Encoding, ...], self._workers.ask_one("sentence_encodings"))

    @cached_property
    def layers(self) -> int:
        return int(self._workers.ask_one("layers"))


class DistributedPredictor:
    """A predictor whose sentences are read by workers."""

    def __init__(self, workers: "_ModelWorkers", kind: str) -> None:
        self._workers, self._requested_kind = workers, kind
        self.info: ModelInfo = self._ask_one("info")
        self.settings: Settings = self._ask_one("settings")
        self.kind: str = self._ask_one("kind")

    def is_token(self, word: str) -> bool:
        return bool(self._ask_one("is_token", word))

    def predict(self, sentences: Sequence[FilledTemplate]) -> list[Prediction]:
        """One prediction per sentence, in order."""
        pieces = list(iter_sentence_pieces(sentences))
        predictions: dict[FilledTemplate, Prediction] = {}
        arguments = [(piece,) for piece in pieces]
        for number, piece_predictions in self._workers.ask_each(
            "read", arguments, self._requested_kind
        ):
            predictions |= zip(pieces[number], piece_predictions, strict=True)
        return [predictions[sentence] for sentence in sentences]

    def _ask_one(self, name: str, *arguments: object) -> Any:
        return self._workers.ask_one(name, *arguments, predictor=self._requested_kind)


class _ModelWorkers:
    """Those who have the model open. They are asked by the name of an encoder's attribute or
    method, or of the predictor of a kind, with each piece's arguments."""

    def __init__(self, executor: Executor, spec: str, open_options: Mapping[str, Any]) -> None:
        self._executor, self._work = executor, _ModelTask(spec, open_options)
        self._has_started = False

    def ask_one(self, name: str, *arguments: object, predictor: str | None = None) -> Any:
        ((_, answer),) = self.ask_each(name, [arguments], predictor)
        return answer

    def ask_each(
        self, name: str, arguments: Sequence[Sequence[object]], predictor: str | None = None
    ) -> Iterator[tuple[int, Any]]:
        """The number and answer of each piece, in any order. A text that the model cannot read
        raises an error after all others are read; the first such error counts."""
        if not self._has_started:
            self._executor.dismiss()  # the memory of one model is enough
            self._has_started = True
        errors: dict[int, KgbiasError] = {}
        pieces = [(predictor, name, piece_arguments) for piece_arguments in arguments]
        with closing(self._executor.run_pieces(self._work, pieces)) as results:
            for number, answer in results:
                if isinstance(answer, KgbiasError):
                    errors[number] = answer
                else:
                    yield number, answer
        if errors:
            raise errors[min(errors)]


class _ModelTask:
    """A model's answer for a piece (`kgbias.parallel.Work`)."""

    def __init__(self, spec: str, open_options: Mapping[str, Any]) -> None:
        self._spec, self._opening = spec, dict(open_options)
        encoder = open_encoder(spec, **open_options)
        self.version, self.threads = (
            encoder.info.opening_text(encoder.settings),
            count_torch_threads(),
        )
        self.device = str(self._opening.get("device", "auto"))

    def __getstate__(self) -> dict[str, Any]:
        """The form that reaches another process, which opens the model itself."""
        return {name: value for name, value in vars(self).items() if name != "_model"}

    def open(self) -> str:
        if "_model" not in vars(self):
            self._model = LanguageModel(self._spec, cache=False, **self._opening)
        encoder = self._model.encoder
        return encoder.info.opening_text(encoder.settings)

    def __call__(self, piece: tuple[str | None, str, Sequence[Any]]) -> Any:
        predictor, name, arguments = piece
        try:
            model = self._model.predictor(predictor) if predictor else self._model.encoder
            attribute = getattr(model, name)
            return attribute(*arguments) if callable(attribute) else attribute
        except (DataError, UsageError) as error:
            return error
