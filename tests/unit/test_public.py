"""The public names: the list of them, their docstrings, and what importing them costs."""

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

import kgbias
from kgbias.study.beliefs import RunBeliefs
from kgbias.study.maintenance import StoreMaintenance

PUBLIC = set(
    """
    CrawlConfig
    DataError
    Estimate
    Figure
    Interrupted
    Judgement
    KgbiasError
    MEASURES
    MissingExtra
    ModelError
    Plan
    Price
    Reproduction
    Rows
    Run
    RunConflict
    RunNotFound
    Scorer
    SeedCategory
    StoreError
    Study
    UsageError
    __version__
    errors
    gather_sets
    known_seeds
    load_scorer
    model_kinds
    open
    in_memory
    open_model
    open_scorer
    plugins
    price
    probe_sets
    queries
    read_plan
    reproduce
    surprisals
    """.split()
)
STUDY = set(
    """
    context
    calibrate
    close
    compare_runs
    compare_languages
    compare_models
    coverage
    crawl
    cypher
    explore
    figures
    graph
    import_file
    map
    probe_sets
    query
    report
    run
    runs
    scorers
    series
    serve
    sofa
    store
    url
    working
    """.split()
)
STORE = {"backup", "compact", "delete", "push", "rename_model", "verify"}
BELIEFS = {"agreement", "floor", "groups", "models", "replicate"}
RUN = set(
    """
    generation_summary
    context
    agreement
    refusals
    said_more
    questions
    arm_tests
    ask
    ask_in_cypher
    beliefs
    categories
    config
    cost
    counted_statements
    crawl_result
    created
    draw
    evidence
    explore
    export
    figure
    figures
    means_by_prompt_type
    generations
    groups
    id
    import_result
    kind
    measure
    merge
    model
    name
    probe
    probe_models
    probes
    publish
    rename_topic
    report
    review
    settings
    status
    stored
    summarise
    structure
    summary
    compare_groups
    to_networkx
    topic_models
    topics
    triples
    variance
    """.split()
)


def test_the_list_of_public_names() -> None:
    assert set(kgbias.__all__) == PUBLIC == set(dir(kgbias))
    for name in kgbias.__all__:
        assert getattr(kgbias, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kgbias.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("of", "names"),
    [
        (kgbias.Study, STUDY),
        (kgbias.Run, RUN),
        (StoreMaintenance, STORE),
        (RunBeliefs, BELIEFS),
    ],
)
def test_the_list_of_methods(of: type, names: set[str]) -> None:
    assert {name for name in dir(of) if not name.startswith("_")} == names


def test_a_namespace_shows_its_calls() -> None:
    owner: Any = SimpleNamespace(name="mine", url="kgbias.db")
    for part, names in (
        (RunBeliefs(owner), BELIEFS),
        (StoreMaintenance(owner), STORE),
    ):
        assert set(repr(part).partition(": ")[2].rstrip(">").split(", ")) == names


def test_every_public_name_has_a_docstring() -> None:
    for name in PUBLIC - {"__version__", "MEASURES"}:
        value = getattr(kgbias, name)
        assert inspect.getdoc(value), name
    for value in (kgbias.Run, kgbias.Study, kgbias.Rows, StoreMaintenance, RunBeliefs):
        for method in dir(value):
            if not method.startswith("_"):
                assert inspect.getdoc(getattr(value, method)), f"{value.__name__}.{method}"
