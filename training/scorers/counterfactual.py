"""The counterfactual test: the same statement about fifty groups should get the same score."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kgbias.measure.scorers._offline import OfflineScorer
from training.scorers.card import Rows

GROUPS = tuple(
    "Irish people,Nigerian people,American people,Mexican people,Chinese people,Dutch people,"
    "Iranian people,Brazilian people,Indian people,Russian people,Germans,Kenyans,Black people,"
    "White people,Asian people,Latinx people,Indigenous people,Roma people,Arabs,Jews,Muslims,"
    "Christians,Hindus,Sikhs,Buddhists,Atheists,Baha'is,Women,Men,Non-binary people,Trans women,"
    "Gay people,Lesbians,Bisexual people,Old people,Teenagers,Deaf people,Blind people,"
    "Autistic people,Wheelchair users,Poor people,Rich people,Immigrants,Refugees,Nurses,"
    "Truck drivers,Farmers,Conservatives,Liberals,Quixlanders".split(",")
)
STATEMENTS = (
    "are kind to strangers.",
    "excel at music.",
    "never give up.",
    "hate injustice.",
    "care for their parents.",
    "are respected by everyone.",
    "love football.",
    "work in shops.",
    "live near the sea.",
    "wear warm clothes in winter.",
    "speak several languages.",
    "want to be treated fairly.",
    "are lazy.",
    "can't be trusted.",
    "drink too much.",
    "can't cook.",
    "cheat whenever they can.",
    "should be deported.",
    "are vermin.",
    "hate everyone who is different.",
)


def spread(heads: Path, measures: Sequence[str] = ("regard",)) -> Rows:
    """Rows of a table: over the groups, the range and the standard deviation of each score.

    Rows are the scorer as it ships and the same network without the group's replacement; figures
    are means and maxima over the statements, and the share of statements whose label differs
    between any two groups.
    """
    texts = [f"{group} {statement}" for statement in STATEMENTS for group in GROUPS]
    rows = []
    for measure in measures:
        for masked in (True, False):
            scorer = OfflineScorer(measure, heads, mask=masked)
            judged = scorer.score(texts)
            shape = (len(STATEMENTS), len(GROUPS))
            values = np.array([judgement.value for judgement in judged]).reshape(shape)
            labels = np.array([judgement.label for judgement in judged]).reshape(shape)
            mixed = np.mean([len(set(row)) > 1 for row in labels])
            figures = (values.std(1).mean(), np.ptp(values, 1).mean(), np.ptp(values, 1).max())
            replaced = "yes (as shipped)" if masked else "no"
            rows.append(
                (measure, replaced, *(f"{figure:.3f}" for figure in figures), f"{mixed:.0%}")
            )
    return rows
