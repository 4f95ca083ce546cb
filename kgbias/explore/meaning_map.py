"""The map by meaning: each object is placed by what is said with it, so that things which are about
the same lie near each other.

An object's place follows from the mean vector of the statements it is said in (predicate and object
without the group; `kgbias.measure.semantic_search`), each as often as it was said. UMAP (McInnes et
al. 2018) lays the vectors out in two dimensions, beginning from their principal components, so that
the same statements give the same map; without UMAP the two components are the map. Neighbours are
about the same; directions, and distances across the map, mean nothing, and whether two things agree
is not told apart ("lazy" lies near "not lazy").

Regions divide the map by k-means; each is named by the words that are most its own: those with the
highest class-based TF-IDF (Grootendorst 2022).

A layout by UMAP is kept in the cache folder, under a digest of its vectors.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import MissingExtra, UsageError
from kgbias.explore import unit_maps
from kgbias.explore.statements import StatementTable
from kgbias.explore.unit_maps import Floats, Ints, Layout, UnitMap
from kgbias.graph.cache import CacheEntry
from kgbias.graph.store import StoredRun
from kgbias.io.progress import Progress
from kgbias.language.words import FUNCTION_WORDS, lemmatise_word, split_words
from kgbias.measure.semantic_search import SHIPPED_ENCODER
from kgbias.measure.topics.model import load_umap
from kgbias.parallel.local import keeping_threads

MIN_OBJECTS = 30  # objects of a map: fewer have no regions to speak of
MAX_STATEMENTS = 100_000  # statements: of more, no map is made
# Objects that UMAP places, those said most often; others go to those near them.
MAX_ANCHORS = 10_000
_EQUALITY_TOLERANCE = 1e-3  # what half precision may add between equal coordinates
_NEAREST_ANCHORS = 5  # anchors
_NEIGHBOURS = 15
_UMAP_OPTIONS = {"min_dist": 0.25, "metric": "cosine"}
_MAX_DISK_BYTES = 64 << 20  # bytes of all layouts that are kept
_WORDS_PER_NAME = 3  # of the name of a region
_VAGUE_WORDS = FUNCTION_WORDS | set(
    """another anyone anything else everybody everyone everything likely nobody none nothing
    somebody someone something thing things way ways""".split()
)
_REGION_RANGE = (4, 36)  # at least, at most
_OBJECTS_PER_BLOCK = 2048  # objects compared with all anchors at once


def build_all_maps(
    table: StatementTable, *, seed: int, progress: Progress, search: bool = True
) -> list[UnitMap]:
    """The maps of `kgbias.explore.unit_maps.build_maps`, with the one by meaning after that by
    group."""
    group_map, *other_maps = unit_maps.build_maps(
        table, seed=seed, progress=progress, search=search
    )
    meaning_map = build_meaning_map(table, seed=seed)
    return [group_map, *([meaning_map] if meaning_map else []), *other_maps]


def build_meaning_map(table: StatementTable, *, seed: int) -> UnitMap | None:
    """The map of the objects of all statements that have vectors in their store; None if they are
    too few, or all in one place, and of more than `MAX_STATEMENTS` statements."""
    if table.rows > MAX_STATEMENTS:
        return None
    rows, object_numbers = _object_vectors(table)
    if len(object_numbers) < MIN_OBJECTS or np.ptp(rows, axis=0).max() < _EQUALITY_TOLERANCE:
        return None
    object_totals = np.bincount(table.object, table.count, minlength=len(table.objects))[
        object_numbers
    ]
    by_frequency = np.argsort(-object_totals, kind="stable")
    anchors = np.sort(by_frequency[:MAX_ANCHORS])
    places, placing = _place_rows(rows[anchors], seed, table.runs)
    places = _place_others(rows, anchors, places)
    region = _find_regions(places, seed)
    names = _name_regions([table.objects.texts[int(n)] for n in object_numbers], region)
    # As many units of length across as there are dots, so that they have room.
    places -= places.mean(axis=0)
    places *= np.sqrt(len(object_numbers)) / np.sqrt(np.square(places).sum(axis=1).mean())
    centres = np.array([np.median(places[region == n], axis=0) for n in range(len(names))])
    distances = np.sqrt(np.square(places - centres[region]).sum(axis=1))
    radii = np.array([max(1.0, np.median(distances[region == n])) for n in range(len(names))])
    points, home = np.full((len(table.objects), 2), np.nan), np.full(len(table.objects), -1)
    points[object_numbers], home[object_numbers] = places, region
    layout = Layout(centres, radii, points, home, np.zeros((0, 3)))
    return UnitMap("meaning", np.arange(len(names)), layout, names, placing)


class _ObjectVectors(NamedTuple):
    """The mean vectors of objects, and the numbers of those objects."""

    vectors: NDArray[np.float32]
    numbers: Ints


def _object_vectors(table: StatementTable) -> _ObjectVectors:
    """The mean vector of each object, of length 1, and the numbers of the objects that have one."""
    place_by_ends: dict[tuple[str, str], int] = {}
    vector_parts: list[NDArray[np.float32]] = []
    encoder = SHIPPED_ENCODER
    for run in table.runs:
        stored_vectors = run.vectors(encoder)
        for n, ends in enumerate(stored_vectors.statements):
            place_by_ends.setdefault(ends, sum(map(len, vector_parts)) + n)
        vector_parts.append(stored_vectors.rows)
    if not place_by_ends:
        return _ObjectVectors(np.zeros((0, 0), np.float32), np.zeros(0, np.int64))
    vectors = np.concatenate([part for part in vector_parts if len(part)])
    predicates = {n: id for id, n in table.predicates.items()}
    objects = {n: id for id, n in table.objects.items()}
    pairs, inverse = np.unique(
        table.predicate * len(table.objects) + table.object, return_inverse=True
    )
    weight = np.bincount(inverse, table.count)
    total = np.zeros((len(table.objects), vectors.shape[1]), np.float32)
    for pair, pair_weight in zip(pairs.tolist(), weight.tolist(), strict=True):
        predicate, object_number = divmod(pair, len(table.objects))
        place = place_by_ends.get((predicates[predicate], objects[object_number]))
        if place is not None:
            total[object_number] += pair_weight * vectors[place]
    length = np.sqrt(np.square(total).sum(axis=1))
    object_numbers = np.flatnonzero(length > 0)
    return _ObjectVectors(total[object_numbers] / length[object_numbers, None], object_numbers)


class _PlacedRows(NamedTuple):
    """A place for each row, and how it was found."""

    places: Floats
    method: str


def _place_rows(rows: NDArray[np.float32], seed: int, runs: Sequence[StoredRun]) -> _PlacedRows:
    """A place for each row, [n, 2], and how it was found. What UMAP found for the same rows is kept
    in the cache folder: to import it takes some seconds, and to lay out thousands of rows more."""
    centred = rows - rows.mean(axis=0)
    _, _, axes = np.linalg.svd(centred.T @ centred)  # the principal components, heaviest first
    axes = axes[:2] * np.sign(axes[:2].sum(axis=1, keepdims=True))
    start = (centred @ axes.T).astype(np.float64)
    try:
        umap = version("umap-learn")
    except PackageNotFoundError:
        return _PlacedRows(start, "pca")
    digest = blake2b(np.ascontiguousarray(rows).tobytes(), digest_size=16).hexdigest()
    run_names = " ".join(f"{run.store.url} {run.id}" for run in runs)
    # The rows tell selections of the same runs apart, of which each has its own layout.
    cache_entry = CacheEntry(
        ("layouts", "f8"), run_names, "", f"{digest} {umap} {_UMAP_OPTIONS} {_NEIGHBOURS} {seed}"
    )
    cached_layout = cache_entry.read()
    if cached_layout is not None:
        return _PlacedRows(np.frombuffer(cached_layout, "<f8").reshape(len(rows), 2).copy(), "umap")
    try:
        places = _run_umap(rows, start, seed)
    except (MissingExtra, UsageError):  # not whole, or not safe in this folder
        return _PlacedRows(start, "pca")
    cache_entry.write(places.astype("<f8").tobytes(), lambda: True, _MAX_DISK_BYTES)
    return _PlacedRows(places, "umap")


def _run_umap(rows: NDArray[np.float32], start: Floats, seed: int) -> Floats:
    import warnings

    umap = load_umap()
    spread = start / start.std(axis=0).max() * 1e-4
    with warnings.catch_warnings(), keeping_threads():
        warnings.simplefilter("ignore")  # that a seed means one thread; deprecations within it
        model = umap(
            **_UMAP_OPTIONS,
            n_neighbors=min(_NEIGHBOURS, len(rows) - 1),
            random_state=seed,
            init=spread,
            n_jobs=1,
        )
        return np.asarray(model.fit_transform(rows), dtype=np.float64)


def _place_others(rows: NDArray[np.float32], anchors: Ints, places: Floats) -> Floats:
    """The places of all rows: those of anchors as given, others among the anchors nearest them."""
    all_places = np.empty((len(rows), 2))
    all_places[anchors] = places
    other_rows = np.setdiff1d(np.arange(len(rows)), anchors)
    for start in range(0, len(other_rows), _OBJECTS_PER_BLOCK):
        chunk = other_rows[start : start + _OBJECTS_PER_BLOCK]
        cosines = rows[chunk] @ rows[anchors].T
        nearest_anchors = np.argpartition(-cosines, _NEAREST_ANCHORS, axis=1)[:, :_NEAREST_ANCHORS]
        weight = (
            np.maximum(np.take_along_axis(cosines, nearest_anchors, axis=1), 1e-6).astype(
                np.float64
            )
            ** 4
        )
        weight /= weight.sum(axis=1, keepdims=True)
        all_places[chunk] = (places[nearest_anchors] * weight[:, :, None]).sum(axis=1)
    return all_places


def _find_regions(places: Floats, seed: int) -> Ints:
    """The region of each place: k-means, with centres that begin far apart. Regions are numbered by
    size, the largest first."""
    number = int(np.clip(round(np.sqrt(len(places)) / 2), *_REGION_RANGE))
    rng = np.random.default_rng(seed)
    centres = places[[int(rng.integers(len(places)))]]
    distances = _squared_distances(places, centres)[:, 0]
    while len(centres) < number and distances.any():  # k-means++ (Arthur and Vassilvitskii 2007)
        next_centre = places[[int(rng.choice(len(places), p=distances / distances.sum()))]]
        centres = np.concatenate([centres, next_centre])
        distances = np.minimum(distances, _squared_distances(places, next_centre)[:, 0])
    for _ in range(30):
        label = _squared_distances(places, centres).argmin(axis=1)
        centres = np.stack([places[label == n].mean(axis=0) for n in np.unique(label)])
    _, label, sizes = np.unique(
        _squared_distances(places, centres).argmin(axis=1), return_inverse=True, return_counts=True
    )
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[label]


def _squared_distances(places: Floats, centres: Floats) -> Floats:
    """The squared distance of each place to each centre."""
    return np.asarray(np.square(places[:, None, :] - centres[None, :, :]).sum(axis=2))


def _name_regions(texts: Sequence[str], region: Ints) -> tuple[str, ...]:
    """The words most a region's own, for each region, each in the form found most often."""
    lemma_counts: list[Counter[str]] = [Counter() for _ in range(int(region.max()) + 1)]
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text, n in zip(texts, region.tolist(), strict=True):
        telling_words = {
            w for w in split_words(text) if w.isalpha() and w not in _VAGUE_WORDS and len(w) > 2
        }
        for word in telling_words:
            lemma_counts[n][lemmatise_word(word)] += 1
            forms[lemmatise_word(word)][word] += 1
    total_counts = sum(lemma_counts, Counter())
    average = total_counts.total() / len(lemma_counts)
    names = []
    for region_counts in lemma_counts:
        weights = {
            w: n / region_counts.total() * float(np.log(1 + average / total_counts[w]))
            for w, n in region_counts.items()
        }
        best_words = sorted(weights, key=lambda w: (-weights[w], w))[:_WORDS_PER_NAME]
        names.append(", ".join(forms[w].most_common(1)[0][0] for w in best_words) or "other")
    return tuple(names)
