"""The map by meaning: each object is placed by what is said with it, so that things which are about
the same lie near each other.

An object's place follows from the mean vector of the statements it is said in (predicate and object
without the group; `kgbias.measure.semantic_search`), each as often as it was said. UMAP (McInnes et al.
2018) lays the vectors out in two dimensions, beginning from their principal components, so that the
same statements give the same map; without UMAP the two components are the map. Neighbours are about
the same; directions, and distances across the map, mean nothing, and whether two things agree is
not told apart ("lazy" lies near "not lazy").

Regions divide the map by k-means; each is named by the words that are most its own: those with the
highest class-based TF-IDF (Grootendorst 2022).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import MissingExtra, UsageError
from kgbias.explore import units
from kgbias.explore.statements import Statements
from kgbias.explore.units import Floats, Ints, Layout, Map
from kgbias.graph.cache import CacheEntry
from kgbias.graph.store import StoredRun
from kgbias.io.progress import Progress
from kgbias.language.words import FUNCTION_WORDS, lemmatise_word, split_words
from kgbias.measure.semantic_search import SHIPPED_ENCODER
from kgbias.measure.topics.model import load_umap
from kgbias.parallel.local import keeping_threads

FEWEST = 30  # objects of a map: fewer have no regions to speak of
LARGEST = 100_000  # statements: of more, no map is made
ANCHORS = 10_000  # objects that UMAP places, those said most often; others go to those near them
_SAME = 1e-3  # what half precision may add between equal coordinates
_NEAREST = 5  # anchors
_NEIGHBOURS = 15
_HOW = {"min_dist": 0.25, "metric": "cosine"}
_ON_DISK = 64 << 20  # bytes of all layouts that are kept
_WORDS = 3  # of the name of a region
_VAGUE = FUNCTION_WORDS | set(
    """another anyone anything else everybody everyone everything likely nobody none nothing
    somebody someone something thing things way ways""".split()
)
_REGIONS = (4, 36)  # at least, at most
_BLOCK = 2048  # objects compared with all anchors at once


def maps(found: Statements, *, seed: int, progress: Progress, search: bool = True) -> list[Map]:
    """The maps of `kgbias.explore.units.maps`, with the one by meaning after that by group."""
    first, *others = units.maps(found, seed=seed, progress=progress, search=search)
    own = by_meaning(found, seed=seed)
    return [first, *([own] if own else []), *others]


def by_meaning(found: Statements, *, seed: int) -> Map | None:
    """The map of the objects of all statements that have vectors in their store; None if they are
    too few, or all in one place, and of more than `LARGEST` statements."""
    if found.rows > LARGEST:
        return None
    rows, things = _of_objects(found)
    if len(things) < FEWEST or np.ptp(rows, axis=0).max() < _SAME:
        return None
    said = np.bincount(found.object, found.count, minlength=len(found.objects))[things]
    first = np.argsort(-said, kind="stable")
    anchors = np.sort(first[:ANCHORS])
    places, how = _placed(rows[anchors], seed, found.runs)
    places = _with_others(rows, anchors, places)
    region = _regions(places, seed)
    names = _names([found.objects.texts[int(n)] for n in things], region)
    # As many units of length across as there are dots, so that they have room.
    places -= places.mean(axis=0)
    places *= np.sqrt(len(things)) / np.sqrt(np.square(places).sum(axis=1).mean())
    centres = np.array([np.median(places[region == n], axis=0) for n in range(len(names))])
    away = np.sqrt(np.square(places - centres[region]).sum(axis=1))
    radii = np.array([max(1.0, np.median(away[region == n])) for n in range(len(names))])
    points, home = np.full((len(found.objects), 2), np.nan), np.full(len(found.objects), -1)
    points[things], home[things] = places, region
    layout = Layout(centres, radii, points, home, np.zeros((0, 3)))
    return Map("meaning", np.arange(len(names)), layout, names, how)


def _of_objects(found: Statements) -> tuple[NDArray[np.float32], Ints]:
    """The mean vector of each object, of length 1, and the numbers of the objects that have one."""
    known: dict[tuple[str, str], int] = {}
    parts: list[NDArray[np.float32]] = []
    encoder = SHIPPED_ENCODER
    for run in found.runs:
        kept = run.vectors(encoder)
        for n, ends in enumerate(kept.statements):
            known.setdefault(ends, sum(map(len, parts)) + n)
        parts.append(kept.rows)
    if not known:
        return np.zeros((0, 0), np.float32), np.zeros(0, np.int64)
    vectors = np.concatenate([part for part in parts if len(part)])
    predicates = {n: id for id, n in found.predicates.items()}
    objects = {n: id for id, n in found.objects.items()}
    pairs, inverse = np.unique(
        found.predicate * len(found.objects) + found.object, return_inverse=True
    )
    weight = np.bincount(inverse, found.count)
    total = np.zeros((len(found.objects), vectors.shape[1]), np.float32)
    for pair, heavy in zip(pairs.tolist(), weight.tolist(), strict=True):
        predicate, thing = divmod(pair, len(found.objects))
        if (place := known.get((predicates[predicate], objects[thing]))) is not None:
            total[thing] += heavy * vectors[place]
    length = np.sqrt(np.square(total).sum(axis=1))
    things = np.flatnonzero(length > 0)
    return total[things] / length[things, None], things


def _placed(rows: NDArray[np.float32], seed: int, runs: Sequence[StoredRun]) -> tuple[Floats, str]:
    """A place for each row, [n, 2], and how it was found. What UMAP found for the same rows is kept
    in the cache folder: to import it takes some seconds, and to lay out thousands of rows more."""
    centred = rows - rows.mean(axis=0)
    _, _, axes = np.linalg.svd(centred.T @ centred)  # the principal components, heaviest first
    axes = axes[:2] * np.sign(axes[:2].sum(axis=1, keepdims=True))
    start = (centred @ axes.T).astype(np.float64)
    try:
        umap = version("umap-learn")
    except PackageNotFoundError:
        return start, "pca"
    digest = blake2b(np.ascontiguousarray(rows).tobytes(), digest_size=16).hexdigest()
    which = " ".join(f"{run.store.url} {run.id}" for run in runs)
    # The rows tell selections of the same runs apart, of which each has its own layout.
    place = CacheEntry(("layouts", "f8"), which, "", f"{digest} {umap} {_HOW} {_NEIGHBOURS} {seed}")
    if (kept := place.read()) is not None:
        return np.frombuffer(kept, "<f8").reshape(len(rows), 2).copy(), "umap"
    try:
        places = _by_umap(rows, start, seed)
    except (MissingExtra, UsageError):  # not whole, or not safe in this folder
        return start, "pca"
    place.write(places.astype("<f8").tobytes(), lambda: True, _ON_DISK)
    return places, "umap"


def _by_umap(rows: NDArray[np.float32], start: Floats, seed: int) -> Floats:
    import warnings

    umap = load_umap()
    spread = start / start.std(axis=0).max() * 1e-4
    with warnings.catch_warnings(), keeping_threads():
        warnings.simplefilter("ignore")  # that a seed means one thread; deprecations within it
        model = umap(**_HOW, n_neighbors=min(_NEIGHBOURS, len(rows) - 1), random_state=seed,
                     init=spread, n_jobs=1)  # fmt: skip
        return np.asarray(model.fit_transform(rows), dtype=np.float64)


def _with_others(rows: NDArray[np.float32], anchors: Ints, places: Floats) -> Floats:
    """The places of all rows: those of anchors as given, others among the anchors nearest them."""
    every = np.empty((len(rows), 2))
    every[anchors] = places
    others = np.setdiff1d(np.arange(len(rows)), anchors)
    for start in range(0, len(others), _BLOCK):
        part = others[start : start + _BLOCK]
        cosines = rows[part] @ rows[anchors].T
        near = np.argpartition(-cosines, _NEAREST, axis=1)[:, :_NEAREST]
        weight = np.maximum(np.take_along_axis(cosines, near, axis=1), 1e-6).astype(np.float64) ** 4
        weight /= weight.sum(axis=1, keepdims=True)
        every[part] = (places[near] * weight[:, :, None]).sum(axis=1)
    return every


def _regions(places: Floats, seed: int) -> Ints:
    """The region of each place: k-means, with centres that begin far apart. Regions are numbered by
    size, the largest first."""
    number = int(np.clip(round(np.sqrt(len(places)) / 2), *_REGIONS))
    rng = np.random.default_rng(seed)
    centres = places[[int(rng.integers(len(places)))]]
    apart = _squares(places, centres)[:, 0]
    while len(centres) < number and apart.any():  # k-means++ (Arthur and Vassilvitskii 2007)
        chosen = places[[int(rng.choice(len(places), p=apart / apart.sum()))]]
        centres = np.concatenate([centres, chosen])
        apart = np.minimum(apart, _squares(places, chosen)[:, 0])
    for _ in range(30):
        label = _squares(places, centres).argmin(axis=1)
        centres = np.stack([places[label == n].mean(axis=0) for n in np.unique(label)])
    _, label, sizes = np.unique(
        _squares(places, centres).argmin(axis=1), return_inverse=True, return_counts=True
    )
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[label]


def _squares(places: Floats, centres: Floats) -> Floats:
    """The squared distance of each place to each centre."""
    return np.asarray(np.square(places[:, None, :] - centres[None, :, :]).sum(axis=2))


def _names(texts: Sequence[str], region: Ints) -> tuple[str, ...]:
    """The words most a region's own, for each region, each in the form found most often."""
    held: list[Counter[str]] = [Counter() for _ in range(int(region.max()) + 1)]
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text, n in zip(texts, region.tolist(), strict=True):
        for word in {w for w in split_words(text) if w.isalpha() and w not in _VAGUE and len(w) > 2}:
            held[n][lemmatise_word(word)] += 1
            forms[lemmatise_word(word)][word] += 1
    of_all = sum(held, Counter())
    average = of_all.total() / len(held)
    names = []
    for own in held:
        weights = {
            w: n / own.total() * float(np.log(1 + average / of_all[w])) for w, n in own.items()
        }
        best = sorted(weights, key=lambda w: (-weights[w], w))[:_WORDS]
        names.append(", ".join(forms[w].most_common(1)[0][0] for w in best) or "other")
    return tuple(names)
