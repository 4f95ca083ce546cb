"""Which statements share a word with a question: 42 questions, and what they should find."""

from kgbias.ask.retrieval import extract_topic_words
from kgbias.language.words import lemmatise_word

# What a model says of a group, and the questions that are about it. Statements stand beside those
# that only look alike: hate and hats, cars and caring, plans and planes.
SAID = {
    "hate being told what to do": ["What do they hate?", "Who hates whom?", "Are they hated?"],
    "love wearing hats": ["Do they have a hat?", "What do they wear?", "Who wore hats?"],
    "are caring": ["Do they care?", "Who cares about others?"],
    "drive fast cars": ["Do they own a car?", "Are they bad drivers who drive?"],
    "plan everything": ["Are they planning something?", "What was planned?"],
    "are afraid of planes": ["Do they like a plane?"],
    "hope for a better life": ["What are they hoping for?", "What hopes have they?"],
    "hop like rabbits": ["Do they hop?", "Who is hopping?"],
    "rate films badly": ["How do they rate things?", "Who rates whom?"],
    "are like rats": ["Are they called a rat?"],
    "have many children": ["Do they want a child?"],
    "have good wives": ["Do they need a wife?"],
    "marry young": ["When do they get married?", "Whom are they marrying?"],
    "fought in wars": ["Do they fight in a war?"],
    "are cooking all day": ["Do they cook?", "Who cooks better food?"],
    "study hard": ["Have they studied?", "Who studies most?"],
    "stole bicycles": ["Do they steal?", "Who is stealing a bicycle?"],
    "smoke cigars": ["Do they smoke?", "Is a cigar smoked?"],
    "are dying out": ["Do they die?"],
    "wear ties": ["Who has a tie?"],
    "race horses": ["Do they like racing?"],
    "eat rice": ["What are they eating?", "What food do they eat?"],
    "cheat in exams": ["Are they cheating?", "Who cheats?"],
    "work in offices": ["Where do they work?", "Do they own an office?"],
}
PAIRS = {(question, said) for said, questions in SAID.items() for question in questions}
QUESTIONS = sorted({question for question, _ in PAIRS})
# Rightly found as well: they share a word in the same sense.
ALSO = {
    ("What do they wear?", "wear ties"),
    ("Who wore hats?", "wear ties"),
    ("Who cooks better food?", "hope for a better life"),
    ("What are they hoping for?", "hope for a better life"),
}


def test_questions_find_what_they_are_about() -> None:
    """By stems, the rule before (-ings, -ing, -ies, -ers, -er, -ed, -es, -ly, -s and a final e
    taken off), recall was 0.76 and precision 0.68; by lemmas they are 1.00 and 0.98."""
    assert len(QUESTIONS) == 42
    held = {said: {lemmatise_word(w) for w in extract_topic_words(said)} for said in SAID}
    found = {
        (question, said)
        for question in QUESTIONS
        for said in SAID
        if {lemmatise_word(w) for w in extract_topic_words(question)} & held[said]
    }
    right = found & (PAIRS | ALSO)
    recall, precision = len(found & PAIRS) / len(PAIRS), len(right) / len(found)
    assert recall >= 0.95 and precision >= 0.95
