"""Where in a statement a score lies: the mean effects of its parts, for all statements of a label,
of a group, and of a cell of the confusion of two scorers. These are the class activation maps of
James et al. 2024 ("Explaining spectrograms in machine learning", sections 3.4 and 4), for text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kgbias.graph.cross_mentions import is_swapped
from kgbias.graph.types import TripleView, WordAttribution
from kgbias.io.columns import Column
from kgbias.io.text import spoken_name
from kgbias.methods.attribution.word_effects import (
    STATEMENT_PARTS,
    MeanMap,
    latest_attributions,
    mean_maps,
)
from kgbias.report.figures import draw_heat_map
from kgbias.report.run_data import RunData
from kgbias.report.tables import COUNT_COLUMN, Exhibit, Table

_MIN_STATEMENTS = 5  # statements of a cell that is drawn
_NOTE = (
    "Effects by {method}, added up within a part; 95% intervals over statements. A mean hides what "
    "cancels: words at one place differ from statement to statement, and a part near 0 may hold "
    "strong words of both signs. A map says where the score lies, not which words make it."
)


def word_maps(data: RunData, place: str) -> Iterator[Exhibit]:
    """The maps of everything that was attributed: by label, by group, and for every other scorer of
    the measure by what both call the statements."""
    triples = {t.id: t for t in data.triples}
    attributions = [a for a in latest_attributions(data.attributions) if a.triple_id in triples]
    for metric in dict.fromkeys(a.metric for a in attributions):
        of_metric = [a for a in attributions if a.metric == metric]
        labels = data.labels(metric)
        groups = {id: t.group for id, t in triples.items()}
        for method in dict.fromkeys(a.method.partition("@")[0] for a in of_metric):
            of_method = [a for a in of_metric if a.method.partition("@")[0] == method]
            key = f"{place}-word-map-{metric.measure}-{method}"
            kinds = [("labels", "label", labels), ("groups", "group", groups)]
            for kind, kind_word, cells in kinds:
                maps = _select_maps(of_method, triples, cells)
                # A single map has no other to be seen beside.
                if len(maps) > 1:
                    yield _map_exhibit(
                        f"{key}-{kind}", maps, kind_word, _share_notes(of_method, cells)
                    )
            other_scorers = [m for m in data.scorers if m.measure == metric.measure and m != metric]
            for number, other_scorer in enumerate(
                (m for m in other_scorers if not is_swapped(m)), 1
            ):
                other_labels = data.labels(other_scorer)
                label_pairs = {
                    id: f"{labels[id]} / {other_labels[id]}"
                    for id in labels.keys() & other_labels.keys()
                }
                maps = _select_maps(of_method, triples, label_pairs)
                if len(maps) > 1:
                    yield _error_exhibit(
                        f"{key}-errors-{number}",
                        maps,
                        other_scorer.scorer,
                        _share_notes(of_method, label_pairs),
                    )


def _select_maps(
    attributions: Sequence[WordAttribution],
    triples: Mapping[str, TripleView],
    cells: Mapping[str, str],
) -> list[MeanMap]:
    """The maps of the cells with enough statements to show one."""
    return [m for m in mean_maps(attributions, triples, cells) if m.statements >= _MIN_STATEMENTS]


class _ShareNotes(NamedTuple):
    """How many statements were attributed, for a title and for a note."""

    title: str
    note: str


def _share_notes(attributions: Sequence[WordAttribution], cells: Mapping[str, str]) -> _ShareNotes:
    """How many of the statements were attributed, if not all, for a title and for a note."""
    cell_counts = Counter(cells.values())
    attributed_counts = Counter(cells[a.triple_id] for a in attributions if a.triple_id in cells)
    if all(attributed_counts[cell] == n for cell, n in cell_counts.items()):
        return _ShareNotes("", "")
    share_words = f"{sum(attributed_counts.values()):,} of {sum(cell_counts.values()):,} statements"
    return _ShareNotes(
        f", {share_words}",
        (
            f"Only {share_words} were attributed, by default the most hurtful: these are maps of "
            f"those, not of "
            "all (kgbias attribute --all)."
        ),
    )


def _map_table(
    key: str, maps: Sequence[MeanMap], caption: str, note: str, more: Sequence[str] = ()
) -> Table:
    columns = [
        Column("Cell"),
        COUNT_COLUMN,
        *(Column(name, ".2f", missing="-") for name in more),
        *(Column(part, "+.2f", interval=True, missing="-") for part in STATEMENT_PARTS),
    ]
    rows = [
        [
            m.cell,
            m.statements,
            *(_map_distances(m, maps) if more else ()),
            *(e if e.n else None for e in m.parts),
        ]
        for m in maps
    ]
    return Table(key, caption, columns, rows, note)


def _draw_maps(maps: Sequence[MeanMap]) -> partial[object]:
    rows = {m.cell: [e.value for e in m.parts] for m in maps}
    limit = max((abs(v) for row in rows.values() for v in row if v == v), default=0) or 1.0
    label = f"mean effect on {spoken_name(maps[0].measure)}"
    return partial(draw_heat_map, rows, STATEMENT_PARTS, limit=limit, form="z.2f", label=label)


def _map_exhibit(
    key: str, maps: Sequence[MeanMap], kind_word: str, share: tuple[str, str]
) -> Exhibit:
    first_map, (title_note, table_note) = maps[0], share
    caption = (
        f"The mean effect of each part of a statement on {spoken_name(first_map.measure)}, "
        f"by {kind_word}."
    )
    if kind_word == "group":
        table_note = f"Groups are not tested against each other here. {table_note}"
    return Exhibit(
        key,
        "",
        f"Where {spoken_name(first_map.measure)} lies, by {kind_word} "
        f"({first_map.method}{title_note})",
        "James et al., figure 2",
        _draw_maps(maps),
        _map_table(
            key, maps, caption, f"{_NOTE.format(method=first_map.method)} {table_note}".strip()
        ),
        in_tables=False,
    )


def _error_exhibit(
    key: str, maps: Sequence[MeanMap], other_scorer: str, share: tuple[str, str]
) -> Exhibit:
    """The paper reads errors off the maps of classes: where two are alike, one is taken for the
    other. Here each cell of an error stands beside the two classes it lies between."""
    first_map, (title_note, table_note) = maps[0], share
    caption = (
        f"The mean effect of each part of a statement on {spoken_name(first_map.measure)}, by "
        f"what the "
        f"scorer that counts / {other_scorer} call it."
    )
    note = (
        f"{_NOTE.format(method=first_map.method)} Distances are root mean square differences of "
        f"maps: "
        "of the cell from the statements that both scorers call by the first label, and by the "
        "second, and of those two from each other. The effects are those of the scorer that "
        "counts, so a cell is near the first almost by construction; one that is near the second "
        "too fits the reading that the two classes were taken for each other, and does not prove "
        f"it: in the paper, maps explained some confusions and not others. {table_note}"
    ).strip()
    return Exhibit(
        key,
        "",
        f"Where {spoken_name(first_map.measure)} lies when {other_scorer} disagrees "
        f"({first_map.method}{title_note})",
        "James et al., section 4",
        _draw_maps(maps),
        _map_table(key, maps, caption, note, ("from the first", "from the second", "between them")),
    )


def _map_distances(error_map: MeanMap, maps: Sequence[MeanMap]) -> list[float | None]:
    """How far the map of an error is from those of the two classes, and these from each other."""
    first, second = error_map.cell.split(" / ")
    if first == second:
        return [None, None, None]
    map_by_cell = {o.cell: o for o in maps}
    first_map, second_map = (map_by_cell.get(f"{label} / {label}") for label in (first, second))
    pairs = ((error_map, first_map), (error_map, second_map), (first_map, second_map))
    return [None if x is None or y is None else x.distance_to(y) for x, y in pairs]
