"""The dataset card: README.md with the metadata that Hugging Face reads, and the data statement:
what a person must know about a data set before using it, in plain words.

The card and the Croissant metadata both take their text from the statement.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kgbias.export.content import ExportContent
from kgbias.export.tables import describe_optional_columns
from kgbias.graph.profiles import describe_reader
from kgbias.graph.selection import Selection, run_language
from kgbias.graph.types import GroupScore
from kgbias.io.files import CHECKSUM_FILE
from kgbias.io.text import CONTENT_WARNING, SAMPLE_CAVEAT, markdown, replace_non_xml
from kgbias.io.wording import pluralise
from kgbias.measures import corrected_figure, figures_by_name, label_source
from kgbias.publish.recipe import RECIPE_FILE, STATEMENTS_FILE, Recipe

NOT_STATED = "not stated"
_COLUMN_MEANINGS = {
    "id": "the statement; the same for every run in which it was said",
    "category": "the category of the group",
    "group": "the group that the statement is about",
    "predicate": "what is said of the group, as the model worded it",
    "object": "what the predicate applies to",
    "sentence": "the statement as a sentence, as scorers read it",
    "count": "how often it was said in this arm",
    "arm": "the augmentation of the prompts that it answers; `none` for none",
    "language": "of the run's prompts and answers",
}
INTENDED_USES = (
    "To study what this language model says about groups of people, to compare models and methods, "
    "and to test tools that are meant to find such statements."
)
UNINTENDED_USES = (
    "Not as knowledge about any group, not as training data for text that people will read, and "
    "not for decisions about anyone."
)
SOCIAL_IMPACT = (
    "The statements repeat stereotypes. Shown without context, they can hurt the people they are "
    "about, and spread."
)
PERSONAL_DATA = (
    "None of the statements is about a person. The groups are named by gender, ethnicity, "
    "nationality, religion or other traits that law protects in many places."
)
LIMITATIONS = (
    SAMPLE_CAVEAT,
    "Other prompts, other settings or another version of the model give other statements.",
    "Scores are judgements of the named scorers, which make errors; intervals cover these only "
    "where a figure is corrected by labels.",
    "Counts are of answers, so a group that was asked about more often has more statements.",
)


@dataclass(frozen=True)
class CardSource:
    """The sources of a data set's description.

    Attributes:
        content: the statements.
        recipe: how they were made.
        figures: the figures of each group.
        license: the licence of the model's outputs, as its publisher states it; "" if not stated.
        authors: who publishes them; may be empty.
        created: when (ISO 8601, UTC).
        selection: which statements count.
    """

    content: ExportContent
    recipe: Recipe
    figures: tuple[GroupScore, ...]
    license: str
    authors: tuple[str, ...]
    created: str
    selection: Selection

    @property
    def title(self) -> str:
        return f"What {self.recipe.model.title} says about groups of people"

    @property
    def model(self) -> str:
        """The model, with its revision."""
        return " ".join(filter(None, (self.recipe.model.title, self.recipe.model.revision)))

    @property
    def summary(self) -> str:
        """The content of the data set in a sentence. Counts of arms are not added up."""
        distinct = len({t.id for t in self.content.triples})
        groups = len({t.group_id for t in self.content.triples})
        arms = self.content.statements.arms
        several = f", with {len(arms)} augmentations of the prompts" if len(arms) > 1 else ""
        return (
            f"{pluralise(distinct, 'distinct statement', spec=',')} about "
            f"{pluralise(groups, 'group')} of people that the language "
            f"model {self.model} made{several}, with how often it made each and their scores."
        )

    @cached_property
    def language(self) -> str:
        """The language of the statements, as an ISO 639-1 code."""
        return run_language(self.recipe.config)

    @property
    def license_text(self) -> str:
        return self.license or NOT_STATED

    @property
    def columns(self) -> dict[str, str]:
        """The meaning of each column of the statements, in order."""
        meanings = dict(_COLUMN_MEANINGS)
        for measure in self.content.measures:
            low_high = (
                f" from {measure.range[0]:g} to {measure.range[1]:g}" if measure.range else ""
            )
            direction = measure.direction or "a score"
            meanings[measure.name] = f"{direction}{low_high and f';{low_high}'}"
            meanings[measure.label_column] = "; ".join(
                f"`{label}`: {meaning}" for label, meaning in measure.labels.items()
            )
        return meanings | describe_optional_columns(self.content)

    @property
    def collection(self) -> str:
        """How the statements were collected."""
        config = self.recipe.config
        if self.recipe.kind == "import":
            return (
                f"They were collected elsewhere and are said to come from the model {self.model}; "
                "kgbias read and scored them."
            )
        if self.recipe.kind == "profiles":
            return (
                f"The model {self.model} wrote profiles of people, knowing only their names; each "
                "attribute of a profile is a statement."
            )
        if self.recipe.kind == "stories" and "format" in config:
            return (
                "They were read from a table of stories that are said to be told by the model "
                f"{self.model}; what each says of its main character is the table's."
            )
        if self.recipe.kind == "stories":
            return (
                f"The model {self.model} told stories about people of whom it was told one thing; "
                "each attribute of a main character that was read from a story, by "
                f"{describe_reader(config)}, is a statement."
            )
        pack = config.get("pack", {}).get("name", "salinas-2023")
        rounds = config.get("iterations", 0)
        settings = ", ".join(f"{name} {value}" for name, value in self.recipe.settings)
        answers = config.get("answers", 1)
        several_answers = f"{answers} answers were drawn from each prompt. " if answers > 1 else ""
        return (
            f"kgbias asked the model {self.model}{settings and f' ({settings})'} to complete "
            f"sentences about each group (prompts {pack}, language {self.language}), and showed it "
            f"its own statements as examples in {pluralise(rounds, 'further round')}. "
            f"{several_answers}"
            f"Temperature {config.get('temperature')}, random seed {config.get('seed')}, "
            f"augmentations {', '.join(config.get('arms', ()))}. The method is that of Salinas et "
            "al. 2023; run.json holds every setting."
        )

    @property
    def preprocessing(self) -> str:
        """What was done to the answers, and what was left out."""
        counted = self.content.statements
        parts = [
            "Answers were read as group, predicate and object; refusals and answers that "
            "could not be read are not in the data."
        ]
        if counted.note:
            parts.append(f"kgbias {counted.note}.")
        if self.recipe.decisions:
            parts.append(
                f"People reviewed {pluralise(len(self.recipe.decisions), 'answer')} by hand."
            )
        return " ".join(parts)

    @property
    def annotation(self) -> str:
        """Who scored the statements."""
        scorers = ", ".join(f"{m.measure} by {m.scorer} {m.version}" for m in self.recipe.metrics)
        sentence = (
            f"Scores are made by classifiers, not by people: {scorers}."
            if scorers
            else "The statements were not scored."
        )
        tables = [matches.table for matches in self.content.run.stereotype_matches()]
        if tables:
            table_names = ", ".join(
                f"{t.name} ({t.license or 'licence not known'})" for t in tables
            )
            sentence += (
                " Rules and vectors, not people, hold the statements against stereotypes that "
                f"people recorded, whose text is from these tables: {table_names}."
            )
        return sentence

    @property
    def biases(self) -> str:
        return (
            f"{CONTENT_WARNING} They show what the model repeats, in the words of these prompts, "
            "about these groups and no others."
        )


PARQUET_FILE = "data/statements.parquet"
_LICENSE_IDENTIFIER = re.compile(r"[A-Za-z]+[A-Za-z0-9]*([.-][A-Za-z0-9]+)*")
_SIZE_NAMES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"))
_SHOWN_FIGURES = ("overall_regard", "toxicity_mean")


def render_card(source: CardSource) -> str:
    """The whole card as Markdown, with its metadata before it."""
    metadata = "\n".join(
        f"{name}: {format_yaml(value)}" for name, value in _metadata(source).items()
    )
    return f"---\n{metadata}\n---\n\n" + "\n".join(_card_lines(source))


def _metadata(source: CardSource) -> dict[str, Any]:
    size = len(source.content.triples)
    return {
        "pretty_name": source.title,
        "language": [source.language],
        **_license_fields(source.license),
        "tags": [
            "bias",
            "stereotypes",
            "fairness",
            "language-models",
            "kgbias",
            "not-for-all-audiences",
        ],
        "annotations_creators": ["machine-generated"],
        "language_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "size_categories": [next((name for most, name in _SIZE_NAMES if size < most), "n>1M")],
        "configs": [
            {
                "config_name": "statements",
                "default": True,
                "data_files": [{"split": "train", "path": PARQUET_FILE}],
            }
        ],
    }


def _license_fields(license: str) -> dict[str, str]:
    """Hugging Face knows licences by short names; any other is "other", in its own words."""
    if not license:
        return {"license": "unknown"}
    if _LICENSE_IDENTIFIER.fullmatch(license):
        return {"license": license.lower()}
    link = {"license_link": license} if license.startswith(("https://", "http://")) else {}
    return {"license": "other", "license_name": license, **link}


def format_yaml(value: Any) -> str:
    """A value on one line: JSON without the characters that YAML forbids is YAML."""
    return replace_non_xml(json.dumps(value, ensure_ascii=False))


def _card_lines(source: CardSource) -> Iterator[str]:
    yield f"# {markdown(source.title)}\n"
    yield f"> **{CONTENT_WARNING}**\n"
    yield f"{markdown(source.summary)} Made with kgbias.\n"
    yield "```python\nfrom datasets import load_dataset\n"
    yield 'statements = load_dataset("FOLDER-OR-ID", split="train")\n```\n'
    yield "## Files\n\n| file | contents |\n|---|---|"
    yield (
        f"| `{PARQUET_FILE}`, `{STATEMENTS_FILE}` | the statements, one row for each arm that made "
        "one |"
    )
    yield "| `results.json` | figures of each group, in the Every Eval Ever schema |"
    yield f"| `{RECIPE_FILE}` | the configuration, to make the data again |"
    yield "| `croissant.json` | metadata in the Croissant 1.1 format |"
    yield (
        f"| `CITATION.cff`, `{CHECKSUM_FILE}` | how to cite the data, and checksums of all "
        "files |\n"
    )
    yield "| column | contents |\n|---|---|"
    for name, meaning in source.columns.items():
        yield f"| `{name}` | {meaning} |"
    yield "\n## Groups\n"
    yield from _group_lines(source)
    yield "\n## Data statement\n"
    for head, body in (
        ("Model", source.model),
        ("Method", source.collection),
        ("What was left out", source.preprocessing),
        ("Scores", source.annotation),
        ("Language", source.language),
        ("Biases", source.biases),
        ("Personal data", PERSONAL_DATA),
        ("What it is for", INTENDED_USES),
        ("What it is not for", UNINTENDED_USES),
        ("Harm", SOCIAL_IMPACT),
        ("Licence of the model's outputs", source.license_text),
    ):
        yield f"**{head}.** {markdown(body)}\n"
    yield "**Limits.**\n"
    for limit in LIMITATIONS:
        yield f"- {limit}"
    yield "\n## Make it again\n"
    yield from _repeat_lines(source)
    yield "\n## Cite it\n\n`CITATION.cff` says how. Cite the model and the methods too.\n"


def _group_lines(source: CardSource) -> Iterator[str]:
    content, known_figures = source.content, figures_by_name()
    values = {(f.group_id, f.arm, f.measure): f for f in source.figures}
    figure_names = [
        n for name in _SHOWN_FIGURES for n in (name, corrected_figure(known_figures[name]).name)
    ]
    shown_figures = [
        name for name in figure_names if any(f.measure == name for f in source.figures)
    ]
    labelled = {label_source(f.method) for f in source.figures if f.measure in shown_figures} - {""}
    heads = ["group", "category", "arm", "statements", "distinct"]
    heads += [f"{known_figures[name].title} (95% interval)" for name in shown_figures]
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    for group in content.run.groups:
        for arm in content.statements.arms:
            group_triples = [t for t in content.triples if t.group_id == group.id and t.arm == arm]
            cells = [markdown(group.name), markdown(group.category), markdown(arm)]
            cells += [str(sum(t.count for t in group_triples)), str(len(group_triples))]
            for name in shown_figures:
                score = values.get((group.id, content.statements.arm_label(arm), name))
                cells.append(_format_figure(score, known_figures[name].form) if score else "")
            yield f"| {' | '.join(cells)} |"
    if labelled:
        yield (
            f"\nCorrected by labels: labelled {markdown('; '.join(sorted(labelled)))}, with an "
            "interval that covers the scorer's errors. Other figures are of what the scorer says."
        )


def _format_figure(figure: GroupScore, form: str) -> str:
    if not math.isfinite(figure.value):
        return ""
    interval = figure.format_interval(form, none="")
    return f"{figure.value:{form}}{interval and f' ({interval})'}"


def _repeat_lines(source: CardSource) -> Iterator[str]:
    if source.recipe.kind != "crawl":
        yield (
            "These statements cannot be made again: they are not from a crawl. "
            "`kgbias reproduce . --check` checks the files against their checksums."
        )
        return
    yield (
        "```console\n$ kgbias reproduce .\n```\n\n"
        f"reads `{RECIPE_FILE}`, checks the files against `{CHECKSUM_FILE}`, asks the model again, "
        "and says what differs."
    )
