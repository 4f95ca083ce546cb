"""Topics of a run: one model for each category of groups, as in the paper, because topics (and so
entropies) of different categories cannot be compared."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kgbias.graph.draws import Draws
from kgbias.graph.selection import SelectedStatements, Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import TopicAssignment, GroupScore, Run, Topic, TopicModel, TripleView
from kgbias.io.progress import Progress, SilentProgress
from kgbias.measure.embedding import load_vectors
from kgbias.measure.scorers import require_english
from kgbias.measure.topics.model import FOLDS, SEEDS, TopicSettings, fit_topics, lemmatise
from kgbias.measure.topics.shares import relative_entropies, topic_shares, unfit
from kgbias.measures import WITHHELD
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate, Sample

ENTROPY = "relative_entropy"
PLUG_IN = "relative_entropy_plug_in"
PUBLISHED = "relative_entropy_as_published"
ENTROPIES = (ENTROPY, PLUG_IN, PUBLISHED)
_METHODS = {
    ENTROPY: "D(group || mean of groups) over topics, bits, bias-corrected; basic bootstrap over ",
    PLUG_IN: "D(group || mean of groups) over topics, bits, of the shares as counted",
    PUBLISHED: "Eq. 1 of Salinas et al. 2023: minus D, in nats, of the shares as counted",
}
_OVER = {
    True: f"prompts and rounds, within the crawl's design, {DEFAULT_DRAWS} draws",
    False: f"statements, taken for independent, {DEFAULT_DRAWS} draws",
}


def measure_topics(
    run: StoredRun,
    settings: TopicSettings | None = None,
    progress: Progress | None = None,
    *,
    device: str = "auto",
    selection: Selection | None = None,
) -> list[TopicModel]:
    """Find the topics of each category of a run, write them to the store with an ABOUT edge from
    each triple, and write each group's relative entropy in each arm.

    A document is a distinct triple that counts, without its group. All arms share the same topics,
    so that they can be compared: `selection` may not choose an arm.

    Raises UsageError for a run that is not in English: lemmas and stop words are English, whatever
    the embedding."""
    require_english(run, "the lemmas and stop words of `topics`")
    settings, progress = settings or TopicSettings(), progress or SilentProgress()
    vectors = load_vectors(settings.embedding, device)
    counted = select_statements(run, replace(selection or Selection(), arm=None))
    said: Counter[str] = Counter()  # a statement counts as often as all arms together said it
    for t in counted.triples:
        said[t.id] += t.count
    triples = {t.id: t for t in counted.triples}.values()
    chosen = {name: value for name, value in counted.as_dict().items() if name != "arms"}
    categories = list(dict.fromkeys(g.category for g in run.groups))
    progress.stage("topics", len(categories) * (SEEDS + FOLDS))
    models = []
    for done, category in enumerate(categories, start=1):
        ids = {g.id for g in run.groups if g.category == category}
        own = sorted((t for t in triples if t.group_id in ids), key=lambda t: t.id)
        seeds = Counter(done=(done - 1) * (SEEDS + FOLDS))

        def advance(seeds: Counter[str] = seeds) -> None:
            seeds["done"] += 1
            progress.advance()

        statements = sum(said[t.id] for t in own)
        fit = fit_topics(
            lemmatise([f"{t.predicate} {t.object}" for t in own]),
            vectors,
            settings,
            statements=statements,
            advance=advance,
        )
        progress.advance(done * (SEEDS + FOLDS) - seeds["done"])
        topics = tuple(
            Topic(category, number, words, fit.labels.count(number), coherence, stability, kept)
            for number, (words, coherence, stability, kept) in enumerate(
                zip(fit.topics, fit.coherences, fit.stabilities, fit.kept, strict=True)
            )
        )
        about = tuple(
            TopicAssignment(
                t.id,
                topics[label].id if label >= 0 else None,
                strength,
                assigned=label >= 0 and strength == 0,
            )
            for t, label, strength in zip(own, fit.labels, fit.strengths, strict=True)
        )
        held = [0] * len(topics)
        for t, label in zip(own, fit.labels, strict=True):
            if label >= 0:
                held[label] += said[t.id]
        record = fit.settings | {
            "statements": statements,
            "largest_share": max(held) / sum(held) if held else None,
            "selection": chosen,
        }
        models.append(TopicModel(category, topics, about, record))
    run.save_topics(models)
    run.save_group_scores(entropies(run, select_statements(run)), replacing=ENTROPIES)
    return run.topics()


def entropies(run: StoredRun, counted: SelectedStatements) -> list[GroupScore]:
    """Each group's relative entropy over the run's topics, arm by arm."""
    models = run.topics()
    draws = Draws.from_run(run, counted) if models else None
    return [
        figure
        for arm in counted.arms
        for figure in entropy_figures(
            run.record, counted.triples_of_arm(arm), models, draws, arm=counted.arm_label(arm)
        )
    ]


def entropy_figures(
    run: Run,
    triples: Sequence[TripleView],
    models: Sequence[TopicModel],
    draws: Draws | None = None,
    *,
    arm: str = "",
) -> list[GroupScore]:
    """Each group's relative entropy, in the three forms of `relative_entropies`, if its category
    has at least two groups; `draws` says how the triples were drawn (None: independently), `arm` is
    the arm of all of them. If the topics do not support it (`unfit`), the figures have no value and
    say why, except for Eq. 1 in a model that asks for the published form."""
    figures = []
    for model in models:
        # By id, so that the order of a run's groups changes neither draws nor rounding.
        shares = sorted(topic_shares(run, triples, model, draws), key=lambda s: s.group.id)
        if len(shares) < 2:
            continue
        reason = unfit(model)
        published = not reason or model.settings.get("entropy") == "as_published"
        samples = _samples(triples, model, [s.group.id for s in shares], draws)
        found_of = relative_entropies([s.counts for s in shares], samples)
        for s, sample, entropy in zip(shares, samples, found_of, strict=True):
            n = entropy.estimate.n
            if not n and not reason:
                continue
            found = {
                ENTROPY: entropy.estimate,
                PLUG_IN: Estimate.missing(n, entropy.plug_in),
                PUBLISHED: Estimate.missing(n, entropy.published),
            }
            for name, e in found.items():
                if reason and not (n and published and name == PUBLISHED):
                    withheld = Estimate.missing(n)
                    score = GroupScore.from_estimate(s.group.id, name, withheld, WITHHELD + reason, arm)
                else:
                    over = _OVER[sample is not None] if name == ENTROPY else ""
                    score = GroupScore.from_estimate(s.group.id, name, e, _METHODS[name] + over, arm)
                figures.append(score)
    return figures


def _samples(
    triples: Sequence[TripleView],
    model: TopicModel,
    groups: Sequence[str],
    draws: Draws | None,
) -> list[Sample | None]:
    """The topic numbers of each group's statements, with how these were drawn."""
    if draws is None or not draws.is_known:
        return [None] * len(groups)
    number = {topic.id: topic.number for topic in model.topics}
    topics = {a.triple_id: number[a.topic_id] for a in model.about if a.topic_id is not None}
    own: dict[str, list[TripleView]] = defaultdict(list)
    for t in triples:
        own[t.group_id].append(t)
    return [draws.labelled_sample(own[group], topics) for group in groups]
