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
from kgbias.models.embed import Encoder, Encoding, Place, Span, open_encoder, text_pieces
from kgbias.models.predict import (
    CausalPredictor,
    Filled,
    MaskedPredictor,
    Prediction,
    open_predictor,
    sentence_pieces,
)
from kgbias.models.spec import weights
from kgbias.models.vectors import Found
from kgbias.parallel import Executor
from kgbias.parallel.local import count_torch_threads

if TYPE_CHECKING:
    from kgbias.models.held import HeldModel, HeldVectors


class LanguageModel:
    """The model of a spec, to give vectors and, if it can, to predict words; each is loaded when
    first asked. The parameters are those of `open_encoder`."""

    def __init__(self, spec: str, *, cache: bool = True, **opening: Any) -> None:
        self.encoder = open_encoder(spec, cache=cache, **opening)
        self._spec, self._opening = spec, opening
        self._predictors: dict[str, MaskedPredictor | CausalPredictor] = {}

    def predictor(self, kind: str = "auto") -> MaskedPredictor | CausalPredictor:
        """See `open_predictor`."""
        if kind not in self._predictors:
            self._predictors[kind] = open_predictor(self._spec, kind=kind, **self._opening)
        return self._predictors[kind]


class SpreadModel:
    """As `LanguageModel`, of which each worker opens its own. This process keeps vectors on disk;
    `notify` is not told what happens elsewhere."""

    def __init__(
        self, executor: Executor, spec: str, *, cache: bool = True, **opening: Any
    ) -> None:
        opening.pop("notify", None)
        self._workers = _Workers(executor, spec, opening)
        self.encoder = SpreadEncoder(self._workers, spec, cache, opening)

    def predictor(self, kind: str = "auto") -> "SpreadPredictor":
        """See `open_predictor`."""
        return SpreadPredictor(self._workers, kind)


def language_model(
    spec: "str | HeldModel", executor: Executor | None = None, *, cache: bool = True, **opening: Any
) -> "LanguageModel | SpreadModel | HeldVectors":
    """The model of a spec, here or in an executor's workers, or one that the program holds."""
    if not isinstance(spec, str):
        if executor is not None:
            raise UsageError("`executor` opens models itself: name a spec instead of an open one")
        return spec.vectors(cache=cache)
    opening["cache"] = cache
    if executor is None:
        return LanguageModel(spec, **opening)
    return SpreadModel(executor, spec, **opening)


class SpreadEncoder(Encoder):
    """An encoder whose texts are read by workers."""

    def __init__(
        self, workers: "_Workers", spec: str, cache: bool, opening: Mapping[str, Any]
    ) -> None:
        super().__init__(spec, weights(spec), cache=cache, **opening)
        self._workers = workers

    def _compute(
        self, spans: Sequence[Span], places: Sequence[Place]
    ) -> Iterator[dict[tuple[Span, Place], NDArray[np.float32]]]:
        asked = [(piece, places) for piece in text_pieces(spans)]
        for _, vectors in self._workers.each("read", asked):
            yield vectors

    def find(self, words: Iterable[str]) -> Found:
        return cast(Found, self._workers.one("find", list(words)))

    def known(self, word: str) -> bool:
        return bool(self._workers.one("known", word))

    @cached_property
    def sentence_encoding(self) -> Encoding:
        return cast(Encoding, self._workers.one("sentence_encoding"))

    @cached_property
    def sentence_encodings(self) -> tuple[Encoding, ...]:
        return cast(tuple[Encoding, ...], self._workers.one("sentence_encodings"))

    @cached_property
    def layers(self) -> int:
        return int(self._workers.one("layers"))


class SpreadPredictor:
    """A predictor whose sentences are read by workers."""

    def __init__(self, workers: "_Workers", kind: str) -> None:
        self._workers, self._asked = workers, kind
        self.info: ModelInfo = self._one("info")
        self.settings: Settings = self._one("settings")
        self.kind: str = self._one("kind")

    def known(self, word: str) -> bool:
        return bool(self._one("known", word))

    def predict(self, sentences: Sequence[Filled]) -> list[Prediction]:
        """One prediction per sentence, in order."""
        pieces = list(sentence_pieces(sentences))
        found: dict[Filled, Prediction] = {}
        asked = [(piece,) for piece in pieces]
        for number, read in self._workers.each("read", asked, self._asked):
            found |= zip(pieces[number], read, strict=True)
        return [found[sentence] for sentence in sentences]

    def _one(self, name: str, *arguments: object) -> Any:
        return self._workers.one(name, *arguments, predictor=self._asked)


class _Workers:
    """Those who have the model open. They are asked by the name of an encoder's attribute or
    method, or of the predictor of a kind, with each piece's arguments."""

    def __init__(self, executor: Executor, spec: str, opening: Mapping[str, Any]) -> None:
        self._executor, self._work = executor, _Asked(spec, opening)
        self._began = False

    def one(self, name: str, *arguments: object, predictor: str | None = None) -> Any:
        ((_, said),) = self.each(name, [arguments], predictor)
        return said

    def each(
        self, name: str, arguments: Sequence[Sequence[object]], predictor: str | None = None
    ) -> Iterator[tuple[int, Any]]:
        """The number and answer of each piece, in any order. A text that the model cannot read
        raises an error after all others are read; the first such error counts."""
        if not self._began:
            self._executor.dismiss()  # the memory of one model is enough
            self._began = True
        errors: dict[int, KgbiasError] = {}
        pieces = [(predictor, name, own) for own in arguments]
        with closing(self._executor.run_pieces(self._work, pieces)) as found:
            for number, said in found:
                if isinstance(said, KgbiasError):
                    errors[number] = said
                else:
                    yield number, said
        if errors:
            raise errors[min(errors)]


class _Asked:
    """A model's answer for a piece (`kgbias.parallel.Work`)."""

    def __init__(self, spec: str, opening: Mapping[str, Any]) -> None:
        self._spec, self._opening = spec, dict(opening)
        encoder = open_encoder(spec, **opening)
        self.version, self.threads = encoder.info.opened(encoder.settings), count_torch_threads()
        self.device = str(self._opening.get("device", "auto"))

    def __getstate__(self) -> dict[str, Any]:
        """The form that reaches another process, which opens the model itself."""
        return {name: value for name, value in vars(self).items() if name != "_model"}

    def open(self) -> str:
        if "_model" not in vars(self):
            self._model = LanguageModel(self._spec, cache=False, **self._opening)
        encoder = self._model.encoder
        return encoder.info.opened(encoder.settings)

    def __call__(self, piece: tuple[str | None, str, Sequence[Any]]) -> Any:
        predictor, name, arguments = piece
        try:
            model = self._model.predictor(predictor) if predictor else self._model.encoder
            said = getattr(model, name)
            return said(*arguments) if callable(said) else said
        except (DataError, UsageError) as error:
            return error
