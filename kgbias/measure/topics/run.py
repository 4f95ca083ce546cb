"""Topics of a run: one model for each category of groups, as in the paper, because topics (and so
entropies) of different categories cannot be compared."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

from kgbias.errors import MissingExtra
from kgbias.graph.draws import Draws
from kgbias.graph.selection import SelectedStatements, Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore, Run, Topic, TopicAssignment, TopicModel, TripleView
from kgbias.io.progress import Progress, SilentProgress
from kgbias.measure.embedding import TextVectors, load_vectors
from kgbias.measure.scorers import require_english
from kgbias.measure.topics.model import FOLD_COUNT, fit_topics, lemmatise
from kgbias.measure.topics.settings import SEED_COUNT, TopicSettings
from kgbias.measure.topics.shares import explain_unfit, relative_entropies, topic_shares
from kgbias.measures import WITHHELD_PREFIX
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate, Sample

ENTROPY_MEASURE = "relative_entropy"
PLUG_IN_ENTROPY = "relative_entropy_plug_in"
PUBLISHED_ENTROPY = "relative_entropy_as_published"
ENTROPY_MEASURES = (ENTROPY_MEASURE, PLUG_IN_ENTROPY, PUBLISHED_ENTROPY)
_METHOD_TEXTS = {
    ENTROPY_MEASURE: "D(group || mean of groups) over topics, bits, bias-corrected; basic "
    "bootstrap over ",
    PLUG_IN_ENTROPY: "D(group || mean of groups) over topics, bits, of the shares as counted",
    PUBLISHED_ENTROPY: "Eq. 1 of Salinas et al. 2023: minus D, in nats, of the shares as counted",
}
_RESAMPLING_TEXTS = {
    True: f"prompts and rounds, within the crawl's design, {DEFAULT_DRAWS} draws",
    False: f"statements, taken for independent, {DEFAULT_DRAWS} draws",
}


def open_topic_vectors(run: StoredRun, embedding: str, device: str) -> TextVectors:
    """The vectors that topics of a run are found in. Raises UsageError for a run that is not in
    English and a spec that does not exist, DataError for a file that holds no vectors, and
    MissingExtra if a package is missing."""
    require_english(run, "the lemmas and stop words of `topics`")
    for package in ("bertopic", "hdbscan", "umap", "sklearn", "spacy"):
        if find_spec(package) is None:
            raise MissingExtra(package, extra="topics")
    return load_vectors(embedding, device)


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
    settings, progress = settings or TopicSettings(), progress or SilentProgress()
    vectors = open_topic_vectors(run, settings.embedding, device)
    selected = select_statements(run, replace(selection or Selection(), arm=None))
    count_by_triple: Counter[str] = (
        Counter()
    )  # a statement counts as often as all arms together said it
    for triple in selected.triples:
        count_by_triple[triple.id] += triple.count
    triples = {triple.id: triple for triple in selected.triples}.values()
    selection_record = {name: value for name, value in selected.as_dict().items() if name != "arms"}
    categories = list(dict.fromkeys(g.category for g in run.groups))
    progress.stage("topics", len(categories) * (SEED_COUNT + FOLD_COUNT))
    models = []
    for category_number, category in enumerate(categories, start=1):
        ids = {g.id for g in run.groups if g.category == category}
        # By id: the order of seeds and arms changes neither documents nor assignments.
        category_triples = sorted(
            (triple for triple in triples if triple.group_id in ids), key=lambda triple: triple.id
        )
        seeds = Counter(done=(category_number - 1) * (SEED_COUNT + FOLD_COUNT))

        # The default binds this round's counter, not the last one's.
        def advance(seeds: Counter[str] = seeds) -> None:
            seeds["done"] += 1
            progress.advance()

        statements = sum(count_by_triple[triple.id] for triple in category_triples)
        topic_fit = fit_topics(
            lemmatise([f"{triple.predicate} {triple.object}" for triple in category_triples]),
            vectors,
            settings,
            statements=statements,
            advance=advance,
        )
        # A category without topics stops early; its steps are done all the same.
        progress.advance(category_number * (SEED_COUNT + FOLD_COUNT) - seeds["done"])
        topics = tuple(
            Topic(
                category,
                number,
                words,
                topic_fit.labels.count(number),
                coherence,
                stability,
                kept_share,
            )
            for number, (words, coherence, stability, kept_share) in enumerate(
                zip(
                    topic_fit.topics,
                    topic_fit.coherences,
                    topic_fit.stabilities,
                    topic_fit.kept_shares,
                    strict=True,
                )
            )
        )
        assignments = tuple(
            TopicAssignment(
                triple.id,
                topics[label].id if label >= 0 else None,
                strength,
                # HDBSCAN left it out, and `outliers` assigned it.
                assigned=label >= 0 and strength == 0,
            )
            for triple, label, strength in zip(
                category_triples, topic_fit.labels, topic_fit.strengths, strict=True
            )
        )
        statements_by_topic = [0] * len(topics)
        for triple, label in zip(category_triples, topic_fit.labels, strict=True):
            if label >= 0:
                statements_by_topic[label] += count_by_triple[triple.id]
        record = topic_fit.settings | {
            "statements": statements,
            "largest_share": max(statements_by_topic) / sum(statements_by_topic)
            if statements_by_topic
            else None,
            "selection": selection_record,
        }
        models.append(TopicModel(category, topics, assignments, record))
    run.save_topics(models)
    run.put(
        GroupScore,
        run_entropies(run, select_statements(run)),
        replacing={"measure": ENTROPY_MEASURES},
    )
    return run.topics()


def run_entropies(run: StoredRun, selected: SelectedStatements) -> list[GroupScore]:
    """Each group's relative entropy over the run's topics, arm by arm."""
    models = run.topics()
    draws = Draws.from_run(run, selected) if models else None
    return [
        figure
        for arm in selected.arms
        for figure in entropy_figures(
            run.record, selected.triples_of_arm(arm), models, draws, arm=selected.arm_label(arm)
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
    the arm of all of them. If the topics do not support it (`explain_unfit`), the figures have no
    value and say why, except for Eq. 1 in a model that asks for the published form."""
    figures = []
    for model in models:
        # By id, so that the order of a run's groups changes neither draws nor rounding.
        shares = sorted(
            topic_shares(run, triples, model, draws), key=lambda group_shares: group_shares.group.id
        )
        if len(shares) < 2:
            continue
        reason = explain_unfit(model)
        published = not reason or model.settings.get("entropy") == "as_published"
        samples = _topic_samples(
            triples, model, [group_shares.group.id for group_shares in shares], draws
        )
        relative_entropy_values = relative_entropies(
            [group_shares.counts for group_shares in shares], samples
        )
        for group_shares, sample, entropy in zip(
            shares, samples, relative_entropy_values, strict=True
        ):
            n = entropy.estimate.n
            if not n and not reason:
                continue
            estimates_by_measure = {
                ENTROPY_MEASURE: entropy.estimate,
                PLUG_IN_ENTROPY: Estimate.missing(n, entropy.plug_in),
                PUBLISHED_ENTROPY: Estimate.missing(n, entropy.published),
            }
            for name, estimate in estimates_by_measure.items():
                if reason and not (n and published and name == PUBLISHED_ENTROPY):
                    withheld = Estimate.missing(n)
                    score = GroupScore.from_estimate(
                        group_shares.group.id, name, withheld, WITHHELD_PREFIX + reason, arm
                    )
                else:
                    resampling_text = (
                        _RESAMPLING_TEXTS[sample is not None] if name == ENTROPY_MEASURE else ""
                    )
                    score = GroupScore.from_estimate(
                        group_shares.group.id,
                        name,
                        estimate,
                        _METHOD_TEXTS[name] + resampling_text,
                        arm,
                    )
                figures.append(score)
    return figures


def _topic_samples(
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
    triples_by_group: dict[str, list[TripleView]] = defaultdict(list)
    for t in triples:
        triples_by_group[t.group_id].append(t)
    return [draws.labelled_sample(triples_by_group[group], topics) for group in groups]
