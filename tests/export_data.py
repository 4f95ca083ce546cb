"""A measured run whose every part is hostile text."""

from kgbias.graph.store import Store
from kgbias.graph.types import Answer, Category, Generation, Group, Metric, Run, Score, Triple
from kgbias.models.base import ModelInfo
from tests.hostile import CORPUS

TEXTS = [text for text in CORPUS if text.strip()]


def hostile_run(store: Store, texts: list[str] = TEXTS) -> Run:
    """One triple for each text, as object, with others as predicate and group."""
    groups = tuple(Group(name, "<b>'\"$ & c", (f"{name}'s; |",)) for name in texts[:4])
    model = ModelInfo('m"\\<i>', "$r")
    run = Run(
        "run '\"\\ <x> $1",
        model,
        {"seed": 0, "n": "\\'"},
        groups,
        (Category("<b>'\"$ & c", "'", '"'),),
    )
    store.begin_run(run)
    triples = [
        Triple(groups[n % 4].name, texts[(7 * n) % len(texts)], text)
        for n, text in enumerate(texts)
    ]
    store.keep_answers([Answer(f"k{n}", "m", text, "stop") for n, text in enumerate(texts)])
    store.record_round(
        run.id,
        "none",
        0,
        [
            Generation(
                run.id,
                f"none/{n}",
                t.group_id,
                "none",
                "object",
                0,
                0,
                "ok",
                reason=t.object,
                template="object@1",
                prompt=t.object,
                answer_key=f"k{n}",
                triple=t,
                shown=(triples[n - 1].id,),
                count=1 + n % 3,
            )
            for n, t in enumerate(triples)
        ],
    )
    views = store.triples(run.id)
    regard = [Score(t.id, n % 9 / 4 - 1, "x'", {"<p>": 0.5}) for n, t in enumerate(views)]
    store.save_scores(run.id, Metric("regard", "rule", "1"), regard)
    store.set_status(run.id, "complete")
    return store.find_run(run.name)
