"""What a model's stories say of the groups of its crawl, in the joint view: a handmade store."""

import json
from collections.abc import Sequence
from dataclasses import replace

from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.evidence import Evidence, build_evidence
from kgbias.explore import beliefs, statements
from kgbias.explore.columns import ColumnBlock
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.graph.selection import Selection
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.io.progress import SilentProgress
from kgbias.models.base import ModelInfo
from kgbias.report.exhibits import run_exhibits
from kgbias.report.run_data import RunData
from kgbias.stats.inference import proportion
from tests.report_data import shown_rows
from tests.texts import Texts

Story = tuple[str, int, Sequence[tuple[str, str]]]
MODEL = ModelInfo("test", "r1")
ELVES, ORCS, ENTS = (Group(name, "peoples") for name in ("elves", "orcs", "ents"))
CRAWL = Run("said", MODEL, {"seed": 0}, (ELVES, ORCS))
PREDICATES = {
    "occupation": "work as",
    "origin": "are cast as",
    "family": "have in the family",
    "home": "live in",
    "traits": "are",
    "wants": "want",
}
STORIES = Run(
    "stories", MODEL, {"attributes": PREDICATES, "wordings": 2}, (ELVES, ENTS), kind="stories"
)
SAID = [
    "are nurses",
    "work as nurses",
    "are known for being brave",
    "are not brave",
    "hate nurses",
    "are brave and poor",
    "have children",
    "have no children",
    "are children",
    "work with children",
    "live in forests",
    "have forests",
    "are foreign",
    "want to sing",
    "are courageous",
]


def crawled(store: SQLiteStore) -> StoredRun:
    """A crawl that says everything of elves, and one thing of orcs."""
    store.begin_run(CRAWL)
    of = [(ELVES, text) for text in SAID] + [(ORCS, SAID[0])]
    generations = [
        Generation(
            CRAWL.id,
            str(n),
            group.id,
            "none",
            "object",
            0,
            0,
            "ok",
            triple=Triple(group.name, *text.split(" ", 1)),
        )
        for n, (group, text) in enumerate(of)
    ]
    store.record_round(CRAWL.id, "none", 0, generations)
    store.set_status(CRAWL.id, "complete")
    return StoredRun(store, CRAWL)


def tell(store: SQLiteStore, run: Run, *stories: Story) -> None:
    """Write stories about elves: what each prompt called the person, its sample, what was read."""
    store.begin_run(run)
    generations, profiles = [], []
    for name, sample, read in stories:
        place = f"peoples/elves/{name}/{sample}"
        own = [
            Generation(
                run.id,
                f"{place}#{n}",
                ELVES.id,
                "story",
                attribute,
                sample,
                0,
                "ok",
                triple=Triple("elves", PREDICATES[attribute], value),
            )
            for n, (attribute, value) in enumerate(read)
        ]
        parts = tuple(ProfilePart(a, g.id, "", 0, 1) for (a, _), g in zip(read, own, strict=True))
        labels = {"group": "elves", "category": "peoples"}
        profiles.append(Profile(run.id, place, name, ELVES.id, labels, parts))
        generations += own
    for sample in range(1 + max(sample for _, sample, _ in stories)):
        store.record_round(
            run.id, "story", sample, [g for g in generations if g.iteration == sample]
        )
    store.save_profiles(run.id, profiles)


READ = (
    ("occupation", "nurse"),
    ("family", "child"),
    ("home", "forest"),
    ("origin", "foreign"),
    ("wants", "to sing"),
)
TOLD: Sequence[Story] = (
    ("an elf", 0, READ),
    ("an elf", 2, [("occupation", "nurse"), ("traits", "brave")]),  # the prompt of sample 0
    ("an elf", 1, [("traits", "brave")]),
    ("elvish folk", 0, []),
    ("elvish folk", 1, [("occupation", "baker")]),
)


def by_text(run: StoredRun, group: str = "elves") -> dict[str, Evidence]:
    return {f"{r.predicate} {r.object}": r for r in build_evidence(run).rows if r.group == group}


def test_the_same_claim_is_found_and_each_prompt_counts_once(store: SQLiteStore) -> None:
    run = crawled(store)
    tell(store, STORIES, *TOLD)
    rows = by_text(run)
    making = {
        "are nurses": 1,
        "work as nurses": 1,
        "are known for being brave": 2,
        "have children": 1,
        "live in forests": 1,
        "are foreign": 1,
    }
    assert {
        text: row.story_share for text, row in rows.items() if row.story_share.has_interval
    } == {text: proportion(n, 4) for text, n in making.items()}
    # Opposites, other kinds of claim, part of a claim, and what words do not show stay blank.
    blank = [row.story_share for text, row in rows.items() if text not in making]
    assert len(blank) == 9 and all(told.value != told.value and told.n == 4 for told in blank)
    assert {row.story_run for row in rows.values()} == {"stories"}
    assert {row.count for row in rows.values()} == {1}  # never added to what was said
    (orcs,) = by_text(run, "orcs").values()
    assert orcs.story_run == "" and orcs.story_share.n == 0 and not orcs.story_share.has_interval


def test_stories_of_another_model_or_about_others_are_not_taken(store: SQLiteStore) -> None:
    run = crawled(store)
    assert {(r.story_run, r.story_share.has_interval) for r in build_evidence(run).rows} == {
        ("", False)
    }
    tell(store, replace(STORIES, name="other", model=ModelInfo("other", "r1")), *TOLD)
    store.begin_run(replace(STORIES, name="elsewhere", groups=(ENTS,)))
    assert {(r.story_run, r.story_share.has_interval) for r in build_evidence(run).rows} == {
        ("", False)
    }


def test_the_newest_stories_are_taken_and_none_beside_stories(store: SQLiteStore) -> None:
    run = crawled(store)
    tell(store, STORIES, *TOLD)
    newer = replace(STORIES, name="newer", config={**STORIES.config, "seed": 1})
    tell(store, newer, ("an elf", 0, [("traits", "brave")]))
    rows = by_text(run)
    assert rows["are known for being brave"].story_share == proportion(1, 1)
    assert {row.story_run for row in rows.values()} == {"newer"}
    assert {row.story_run for row in build_evidence(StoredRun(store, newer)).rows} == {""}


def test_the_command_and_the_frame_have_the_columns(store: SQLiteStore, texts: Texts) -> None:
    crawled(store)
    tell(store, STORIES, *TOLD)
    url = str(store.url)
    shown = CliRunner().invoke(
        cli, ["evidence", "said", "--store", url, "--json"], standalone_mode=False
    )
    rows = {f"{r['predicate']} {r['object']}": r for r in json.loads(shown.stdout)["evidence"]}
    brave, sad = rows["are known for being brave"], rows["are courageous"]
    assert (brave["story_share"], brave["story_run"]) == (0.5, "stories")
    assert brave["story_share_low"] < 0.5 < brave["story_share_high"] and sad["story_share"] is None
    printed = CliRunner().invoke(cli, ["evidence", "said", "--store", url], standalone_mode=False)
    texts.check_lines(printed.stdout, "being brave.")
    assert "courageous" not in printed.stdout
    with kgbias.open(url) as study:
        frame = study.run("said").evidence().to_frame()
    assert frame["story_share"].notna().sum() == 6 and set(frame["story_run"]) == {"stories", ""}


def test_the_report_has_a_table_of_what_stories_say_too(store: SQLiteStore) -> None:
    run = crawled(store)
    assert not [e for e in run_exhibits(RunData(run)) if e.key.endswith("in-stories")]
    tell(store, STORIES, *TOLD)
    (found,) = (e for e in run_exhibits(RunData(run)) if e.key.endswith("in-stories"))
    assert "(stories)" in found.table.caption and len(found.table.rows) == 6
    told = proportion(2, 4)
    first = ["elves", "are known for being brave", "1", "50%", told.format_interval(".0%"), "4"]
    assert shown_rows(found.table)[0] == first


def test_the_explorer_says_it_of_a_statement(store: SQLiteStore) -> None:
    run = crawled(store)
    tell(store, STORIES, *TOLD)
    found = statements.read_statement_table([run], Selection(min_acceptability=0), SilentProgress())
    block = ColumnBlock()
    beliefs.add_story_shares(found, block)
    interval = proportion(2, 4).format_interval(".0%")
    assert f"50% ({interval}) of 4 prompts, run stories".encode() in b"".join(block._parts)
    alone = ColumnBlock()
    beliefs.add_story_shares(
        statements.read_statement_table([StoredRun(store, STORIES)], Selection(), SilentProgress()),
        alone,
    )
    assert {"row.story_share", "story_share"} <= block.columns.keys() and not alone.columns
