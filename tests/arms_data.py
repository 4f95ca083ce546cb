"""A measured run of two arms, small enough to count by hand."""

from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import Answer, Generation, Group, Metric, Run, Score, Triple
from kgbias.models.base import ModelInfo

GROUPS = (Group("Elves", "peoples"), Group("Orcs", "peoples"))
# arm, group, predicate, object, count, acceptability
STATEMENTS = [
    ("none", "Elves", "love", "songs", 2, 0.9),
    ("none", "Elves", "hate", "smoke", 1, 0.8),
    ("none", "Orcs", "smoke", "murderer 4000", 2, 0.1),
    ("none", "Orcs", "love", "songs", 1, 0.9),
    ("none", "Elves", "love", "songs", 1, 0.9),
    ("prefix", "Elves", "love", "songs", 1, 0.9),
    ("prefix", "Orcs", "are", "cruel", 4, 0.7),
    ("prefix", "Orcs", "smoke", "murderer 4000", 1, 0.1),
]
# regard and toxicity of each triple, by its object
SCORES = {
    "songs": (0.8, "positive", 0.1),
    "smoke": (0.0, "neutral", 0.2),
    "cruel": (-0.9, "negative", 0.9),
    "murderer 4000": (-0.7, "negative", 0.95),
}


def arms_run(
    store: Store, name: str = "arms", *, acceptability: bool = True, status: str = "complete"
) -> StoredRun:
    """The run. The fourth and the fifth statement were shown "Elves love songs"."""
    config = {"seed": 0, "arms": ["none", "prefix"], "name": name}
    run = Run(name, ModelInfo("test", "r1"), config, GROUPS)
    store.begin_run(run)
    triples = [Triple(*row[1:4]) for row in STATEMENTS]
    generations = [
        Generation(
            run.id,
            f"{arm}/object/{n}",
            triple.group_id,
            arm,
            "object",
            1,
            0,
            "ok",
            template="object@1",
            prompt=f"{triple.group} {triple.predicate}",
            answer_key=f"k{n}",
            triple=triple,
            count=count,
            shown=(triples[0].id,) if n in (3, 4) else (),
        )
        for n, ((arm, *_, count, _), triple) in enumerate(zip(STATEMENTS, triples, strict=True))
    ]
    store.keep_answers([Answer(f"k{n}", "m", t.object, "stop") for n, t in enumerate(triples)])
    for arm in ("none", "prefix"):
        store.record_round(run.id, arm, 1, [g for g in generations if g.arm == arm])
    distinct = {t.id: (t, row[5]) for t, row in zip(triples, STATEMENTS, strict=True)}
    regard, toxicity, sense = [], [], []
    for id, (t, value) in distinct.items():
        scores = SCORES[t.object]
        regard.append(Score(id, scores[0], scores[1]))
        toxicity.append(Score(id, scores[2], "toxic" if scores[2] >= 0.5 else "not toxic"))
        sense.append(Score(id, value, "meaningful" if value >= 0.5 else "not meaningful"))
    store.save_scores(run.id, Metric("regard", "rule", "1"), regard)
    store.save_scores(run.id, Metric("toxicity", "rule", "1"), toxicity)
    if acceptability:
        store.save_scores(run.id, Metric("acceptability", "rule", "1"), sense)
    store.set_status(run.id, status)  # type: ignore[arg-type]
    return StoredRun.find(store, name)
