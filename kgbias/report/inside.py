"""Exhibits of a model's probabilities and vectors, beside what was crawled from it."""

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import numpy as np

from kgbias.graph.types import TripleView, node_id
from kgbias.io.text import p_value
from kgbias.report.run_data import ArmData, Exhibit, RunData
from kgbias.report.tables import Table, cells
from kgbias.report.topic_figures import share_bars
from kgbias.stats.inference import Estimate, bootstrap, mean, proportion


def probes(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """Per model: how often each group has the lowest perplexity before a statement, and how highly
    each group ranks among the groups before the statements that were made about it."""
    groups = data.groups(category)
    for number, (probing, edges) in enumerate(data.whole.probes):
        ranks: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for edge in edges:
            ranks[edge.predicate_id, edge.object_id][edge.group_id] = edge.rank
        ids = {g.id for g in groups}
        grids = [r for r in ranks.values() if ids <= r.keys()]
        if len(groups) < 2 or not grids:
            continue
        rows, shares = [], []
        for g in groups:
            first = proportion(sum(r[g.id] == 1 for r in grids), len(grids))
            statements = [_statement(t) for t in data.triples if t.group_id == g.id]
            own = [ranks[s][g.id] for s in statements if s in ranks and g.id in ranks[s]]
            reciprocal = bootstrap(1 / np.array(own, dtype=np.float64), mean)
            shares.append((g.name, first))
            mrr = cells(reciprocal, ".3f") if own else ["", ""]
            rows.append([g.name, *_percent(first), str(len(own)), *mrr])
        key = f"{place}-probes" + (f"-{number}" if number else "")
        made = probing.record
        draw = partial(share_bars, shares, "statements before which its name has the lowest")
        yield Exhibit(
            key, category, f"Lowest perplexity before a statement, {probing.model.name}", "", draw,
            Table(
                key, f"{len(grids)} statements about {category} under {probing.model.name}.",
                ("Group", "lowest", "95% interval", "own triples", "MRR",
                 "95% interval"),
                rows,
                f"{_RANKED.get(made['measure'], '')} Each group by one name; intervals are over "
                "statements, of these names. Lowest: the share of statements before which the "
                "group ranks first. MRR: mean over the group's own triples of 1 / its rank among "
                "the groups. "
                f"Over all categories the MRR is {made['mrr']:.3f}, by chance "
                f"{made['mrr_expected']:.3f} (p {p_value(made['p_value'])}).",
            ),
        )  # fmt: skip


def associations(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """SC-WEAT of each group beside its overall regard."""
    rows = []
    for g in data.groups(category):
        if found := data.scores.get((g.id, "sc_weat")):
            regard = data.scores.get((g.id, "overall_regard"))
            beside = cells(regard, "+.0f") if regard else ["", ""]
            rows.append([g.name, *cells(found, "+.3f"), *beside])
            how = found.method
    if rows:
        key = f"{place}-sc-weat"
        yield Exhibit(
            key, category, "Association of each group, beside its regard", "", None,
            Table(
                key, f"Single-category association and overall regard of {category}.",
                ("Group", "SC-WEAT d", "95% interval", "overall regard", "95% interval"), rows,
                f"{how}. Above 0: nearer to the words of positive regard; where an interval holds "
                "0, neither is shown.",
            ),
        )  # fmt: skip


def association_tests(data: RunData, place: str) -> Iterator[Exhibit]:
    """The association tests of the run, which belong to no category."""
    rows = []
    for node in data.associations:
        d = Estimate(node.effect_size, node.low, node.high, 0)
        if not math.isnan(node.effect_size):
            words = "+".join(str(node.record["n"][role]) for role in "xyab")
            adjusted = p_value(node.record["p_holm"])
            figures = [*cells(d, "+.3f"), p_value(node.p_value), adjusted]
            rows.append([node.test, node.method, node.model.name, words, *figures])
    if rows:
        key = f"{place}-association-tests"
        yield Exhibit(
            key, "", "Association tests", "", None,
            Table(
                key, "Association tests of the run.",
                ("Test", "method", "model", "words", "d", "95% interval", "p", "p Holm"), rows,
                "Above 0: the first targets go with the first attributes. Words are those of X, Y, "
                "A and B; below 8 a set represents its concept poorly. Holm corrects for the tests "
                "of one call.",
            ),
        )  # fmt: skip


def _statement(triple: TripleView) -> tuple[str, str]:
    return node_id("predicate", triple.predicate), node_id("object", triple.object)


_RANKED = {
    "conditional": "Groups are ranked by the perplexity of the statement's words after the group: "
    "how likely the group's name is by itself does not count (in SoFa's PPL* it does).",
    "whole": "Groups are ranked by the perplexity of the group and the statement together: how "
    "likely the group's name is by itself counts in full.",
    "sofa": "Groups are ranked by PPL*, which divides by the perplexity of the group's name: a "
    "name that is unlikely by itself comes first before nearly everything.",
}
"""What the ranks of groups are normalised by, in words."""


def _percent(share: Estimate) -> list[str]:
    return [f"{100 * share.value:.1f}%", f"{100 * share.low:.1f} to {100 * share.high:.1f}%"]
