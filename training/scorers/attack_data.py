"""Training data for the attack head: texts, how much each attacks, and its weight.

The same head reads a text as it is (identity attack) and with its group replaced (toxicity), so
texts come in both forms. How much a text attacks is a number: 1 for an attack, 0.2 for a fault, 0
for neither.
"""

import csv
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from kgbias.errors import DataError
from training.scorers import data
from training.scorers.acceptability import MEANINGFUL, STATEMENTS
from training.scorers.data import Row

HERE = Path(__file__).parent
FAULT = 0.2
UNKNOWN = 0.3  # attack of a trope with a hidden group
HIDDEN = 0.4  # share of texts with the group replaced
_LEXICON = 300
_IDENTITIES = 1100
_SALAD = 500
_HATRED = 150
_FEELING = 60
_BRIEF = 0.4  # share of "do not" that becomes "don't"
_MENTIONS = 3  # versions of a statement that mentions another group
_LIES = (
    "It is a lie that {}.",
    "It is not true that {}.",
    "It is false that {}.",
    "It is wrong to say that {}.",
    "Nobody should say that {}.",
    "Nobody should believe that {}.",
    "I would never say that {}.",
    "I don't think that {}.",
    "We do not believe that {}.",
    "They are wrong who claim that {}.",
    "The claim that {} is false.",
    "Racists say that {}.",
    "There is no evidence that {}.",
    "Stop saying that {}.",
)
_CLAIMS = (
    "Everyone knows that {}.",
    "Let's face it, {}.",
    "It is a fact that {}.",
    "It is true that {}.",
    "I say that {}.",
    "I believe that {}.",
    "Everybody should know that {}.",
    "Nobody can deny that {}.",
)
_HATE = ("I hate {}.", "We despise {}.", "{} disgust me.", "Everyone should loathe {}.")
_NO_HATE = (
    "I don't hate {}.",
    "I have never despised {}.",
    "We would not loathe {}.",
    "Nobody should hate {}.",
    "{} do not disgust me.",
    "It is wrong to despise {}.",
)
_WORDS = (
    "{} are {}.",
    "{} are known for being {}.",
    "{} are often {}.",
    "Many {} are {}.",
)
_WHOLE = r"\b(?:no|not|never|nobody|nothing|cannot|only|just|all|too|\w+n't)\b"
_AUXILIARY = "(are|were|will|would|should) "
_PAST = r"(?:can|made|stole|brought|chose|\w+ed)\b"
_DENIABLE = re.compile(f"(?!.*{_WHOLE})(?:{_AUXILIARY}|(?!{_PAST}))")
_OWN = ("{} hate {}.", "{} hate their own people.", "{} hate themselves.", "{} don't like {}.")
_ABOUT = ("{}s are known to be {}.", "Most {}s are {}.")
_COMMON = frozenset(
    """
    asexual asylum atheists autistic beggars bisexual blind boomers boys cat childless children
    conservatives council-house deaf depressed disabled divorced drag dwarfs elderly evangelicals
    farmers fat female feminists foreign foreigners gay gender-fluid girls guest hillbillies
    homeless homosexuals housewives husbands illegal immigrants indigenous international intersex
    landlords lepers lesbian lesbians liberals little low-caste maids men mentally middle-aged
    migrants millennials miners missionaries mixed-race mothers mute non-binary nurses obese old
    older pagans pensioners people plumbers policewomen poor queer redneck refugee refugees rich
    schizophrenics seniors servants single slum straight students stutterers teachers teenagers
    toddlers trailer trans transgender travellers truck undocumented unemployed vegetarians veterans
    villagers wheelchair widows wives women working-class young
    """.split()
)


def read_all(hatecheck: Path, seegull: Path) -> list[Row]:
    """Every row, with its group in place. The same files give the same rows."""
    rng = Random(0)
    rows = [
        *_sentences(rng),
        *_hatecheck(hatecheck, rng),
        *_tropes(rng),
        *_own(),
        *_words(rng),
        *_hatred(rng),
        *_statements(Random(1)),
        *_benign(rng),
        *read_seegull(seegull),
        *_lexicon(rng),
        *(crawled := [*read_crawled(), *read_crawled("learnt", 1.5)]),
        *_regarded({row.text for row in crawled}),
        *(row for row in read_statements() if row.source == "nonsense"),
    ]
    return rows + list(_salad(rows, rng))


def _sentences(rng: Random) -> Iterator[Row]:
    others = _people()
    for s in data.read_sentences():
        attack = 1.0 if s.toxic else FAULT if s.regard == "negative" else 0.0
        yield Row(s.text, attack, source="sentences", held=s.held)
        if s.group and not s.toxic:
            swapped = rng.choice(others) + s.text[len(s.group) :]
            yield Row(swapped, attack, 0.5, source="sentences", held=s.held)


def _hatecheck(path: Path, rng: Random) -> Iterator[Row]:
    cases: dict[tuple[str, str], list[dict[str, str]]] = {}
    for case in tables(path, ","):
        if case["functionality"] != "target_group_nh":  # our guide spares no group
            cases.setdefault((case["functionality"], case["case_templ"]), []).append(case)
    for (function, _), same in cases.items():
        for case in rng.sample(same, min(2, len(same))):
            yield hatecheck_row(case, function)


def hatecheck_row(case: dict[str, str], function: str) -> Row:
    hateful = float(case["label_gold"] == "hateful")
    text = case["test_case"].strip()
    return Row(text, hateful, 0.7, source="hatecheck", name=function, held=f"function {function}")


def _tropes(rng: Random) -> Iterator[Row]:
    for trope in tables(HERE / "attack_tropes.tsv"):
        groups, says = trope["about"].split("|"), trope["says"].split("|")
        for said in says:
            for group in groups:
                yield Row(f"{group} {said}.", 1.0, 2.5, source="tropes", hidden=UNKNOWN)
            group = rng.choice(groups)
            clause = f"{inside(group)} {said}"
            for lie in rng.sample(_LIES, 2):
                yield Row(lie.format(clause), 0.0, source="tropes")
            yield Row(rng.choice(_CLAIMS).format(clause), 1.0, 0.7, source="tropes")
            if denied := deny(said):
                yield Row(f"{group} {_briefly(denied, rng)}.", 0.0, source="tropes")
        for harmless in trope["harmless"].split("|"):
            if harmless.startswith("@"):
                text = f"{harmless[1:]} {says[0]}."
                yield Row(text, 0.0, 1.5, source="harmless", hidden=UNKNOWN)
            else:
                yield Row(f"{harmless}.", 0.0, 1.5, source="harmless")


def _briefly(said: str, rng: Random) -> str:
    """What is said, with "not" sometimes contracted, as people write it."""
    short = said.replace("do not ", "don't ", 1).replace("are not ", "aren't ", 1)
    return short if rng.random() < _BRIEF else said


def deny(said: str) -> str | None:
    """What is said about a group, denied: "are not ...", "do not ..."; None if "not" would leave
    part of it standing, and for the past tense."""
    found = _DENIABLE.match(said)
    if found is None:
        return None
    return f"{found[1] or 'do'} not {said[found.end() :]}"


def inside(group: str) -> str:
    """A group's name as written inside a sentence."""
    return group[0].lower() + group[1:] if group.split()[0].lower() in _COMMON else group


def _own() -> Iterator[Row]:
    for row in tables(HERE / "attack_sentences.tsv"):
        target = row["function"] in ("trope", "the same words, harmless")
        hidden = UNKNOWN if target else None
        yield Row(row["text"], float(row["attack"]), 2.0, source=row["function"], hidden=hidden)


def _words(rng: Random) -> Iterator[Row]:
    """Words for groups, by how much they attack, whichever the group."""
    people = _people()
    for row in tables(HERE / "attack_words.tsv"):
        for word in row["words"].split("|"):
            for frame in rng.sample(_WORDS, 2):
                group = rng.choice(people)
                text = frame.format(group if frame[0] == "{" else inside(group), word)
                yield Row(text, float(row["attack"]), 0.7, source="words")


def _hatred(rng: Random) -> Iterator[Row]:
    """Hatred of others for what they are is imputed; hatred of one's own group is not an attack."""
    people = _people()
    others = [name for name in people if name not in read_identities()["plural"]["roles"]]
    for _ in range(_HATRED):
        group, other = rng.choice(people), rng.choice(others)
        yield Row(f"{group} hate {inside(other)}.", 1.0, 0.7, source="hatred")
        yield Row(rng.choice(_OWN).format(group, inside(group)), 0.0, 0.7, source="own hatred")
    for frames, attack in ((_HATE, 1.0), (_NO_HATE, 0.0)):
        for _ in range(_FEELING):
            frame, other = rng.choice(frames), rng.choice(others)
            text = frame.format(other if frame[0] == "{" else inside(other))
            yield Row(text, attack, source="hatred" if attack else "hatred denied")


def _statements(rng: Random) -> Iterator[Row]:
    """What models tend to say, predicate by predicate: attacks, faults, and texts with the same
    words that are neither, including nonsense."""
    people = _people()
    others = [name for name in people if name not in read_identities()["plural"]["roles"]]
    traits = list(read_identities()["adjective"].values())
    for row in tables(HERE / "attack_statements.tsv"):
        for column, attack in (("attacks", 1.0), ("faults", FAULT), ("harmless", 0.0)):
            for said in filter(None, row[column].split("|")):
                for _ in range(_MENTIONS if "{" in said else 1):
                    group, other = rng.sample(others, 2)
                    body = said.format(
                        own=inside(group), other=inside(other), trait=rng.choice(rng.choice(traits))
                    )
                    text = f"{group} {row['predicate']} {body}."
                    # with groups replaced, hatred of one's own cannot be recognised
                    hidden = UNKNOWN if "{own}" in said else None
                    yield Row(text, attack, source="statements", hidden=hidden)


def _benign(rng: Random) -> Iterator[Row]:
    lists = read_identities()
    people = _people()
    kinds = list(lists["adjective"].values())
    frames = lists["sentences"]
    for _ in range(_IDENTITIES):
        kind = rng.choice(("subject", "object", "both", "people"))
        frame, group = rng.choice(frames[kind]), rng.choice(people)
        trait = rng.choice(rng.choice(kinds))
        if kind == "both" and trait.startswith(("a ", "an ")):
            continue
        if kind == "both":
            text = frame.format(group if frame[0] == "{" else inside(group), trait)
        elif kind == "object":
            text = frame.format(trait)
        else:
            text = frame.format(group if frame[0] == "{" else inside(group))
        yield Row(text, 0.0, source="benign")
    for body in tables(MEANINGFUL):
        if body["source"] == "written":
            text = f"{rng.choice(people)} {body['predicate']} {body['object']}."
            yield Row(text, 0.0, 0.7, source="benign")


def read_seegull(folder: Path) -> list[Row]:
    """SeeGULL's rated stereotypes as sentences, with offensiveness from -1 to 4 scaled to 0 to 1:
    each as in the card of regard and, as "said otherwise", in other words."""
    rows = []
    for path in sorted(folder.glob("stereotypes_*.csv")):
        for number, row in enumerate(tables(path, ",")):
            if row["Annotation1"] == "NA":
                continue
            who, what = row["identity"], row["attribute"]
            attack = min(1.0, max(0.0, (float(row["offensiveness_score"]) + 0.7) / 4))
            for source, frame in (
                ("seegull", "{} people are {}."),
                ("said otherwise", _ABOUT[number % len(_ABOUT)]),
            ):
                text = frame.format(who, what.replace("_", " "))
                rows.append(
                    Row(text, attack, 1.5, source=source, name=who, held=f"attribute {what}")
                )
    if not rows:
        raise DataError(f"{folder} has no stereotypes_*.csv of SeeGULL")
    return rows


def _lexicon(rng: Random) -> Iterator[Row]:
    plain = [w for w in data.read_words() if w.valence is not None]
    for word in rng.sample(plain, _LEXICON):
        text = rng.choice(("They are {}.", "They {}.", "People call them {}.")).format(word.text)
        yield Row(text, 0.25 * max(0.0, -(word.valence or 0.0)), 0.3, source="lexicon")


def read_crawled(name: str = "crawled", weight: float = 2.5) -> list[Row]:
    """What models said, read and labelled one by one: "crawled", on which readers are also
    evaluated, crawl by crawl, or "learnt", which is never held out."""
    return [
        Row(
            f"{row['group']} {row['predicate']} {row['object']}.",
            float(row["attack"]),
            weight,
            source=name,
            name=row["crawl"],
            held=f"crawl {row['crawl']}" if name == "crawled" else "",
        )
        for row in tables(HERE / f"attack_{name}.tsv")
    ]


def read_development() -> list[Row]:
    """What models said in crawls from which nothing is learnt, read and labelled one by one."""
    return [
        Row(
            f"{row['group']} {row['predicate']} {row['object']}.",
            float(row["attack"]),
            source="development",
            name=row["crawl"],
        )
        for row in tables(HERE / "attack_development.tsv")
    ]


def _regarded(known: set[str]) -> Iterator[Row]:
    """Statements from crawls that were read for regard only: what does not lower a group in a
    reader's eyes does not attack it. Whether negative ones do is left open."""
    for example in data.read_crawled():
        if example.regard != "negative" and example.text not in known:
            yield Row(
                example.text, 0.0, 1.5, source="regarded", name=example.cluster, held=example.held
            )


def read_statements() -> list[Row]:
    """The statements that acceptability learns from, as "meaningful", "partly" or "nonsense".
    Only nonsense is known to attack nobody."""
    names = {"m": "meaningful", "p": "partly", "n": "nonsense"}
    return [
        Row(
            f"{row['group']} {row['predicate']} {row['object']}.",
            0.0,
            source=names[row["label"]],
            name=row["crawl"],
            held=f"crawl {row['crawl']}",
        )
        for row in tables(STATEMENTS)
    ]


def _salad(rows: Sequence[Row], rng: Random) -> Iterator[Row]:
    """Words from attacks and from other texts, in a meaningless order."""
    groups = _people()
    said = [row for row in rows if row.source in ("sentences", "crawled")]
    bodies = [row.text.rstrip(".").split()[1:] for row in said]
    harsh = [row.text.rstrip(".").split()[1:] for row in rows if row.attack == 1.0]
    fillers = "the of and is to that not 's they it are in i.e 100% Q A: # 4 or which a you".split()
    for _ in range(_SALAD):
        words = rng.choice(harsh)[-3:] + rng.sample(fillers, 2)
        for _ in range(2):
            words += rng.sample(body := rng.choice(bodies), min(2, len(body)))
        rng.shuffle(words)
        start = rng.choice(("", "are ", "hate ", "can't ", "love "))
        text = f"{rng.choice(groups)} {start}{' '.join(words[: rng.randint(3, 8)])}."
        yield Row(text, 0.0, 0.5, source="salad")


def _people() -> list[str]:
    """Names of groups, as at the beginning of a sentence."""
    return [name for names in read_identities()["plural"].values() for name in names]


def read_identities() -> dict[str, dict[str, list[str]]]:
    """Names of groups, and sentences that say nothing bad about any."""
    with (HERE / "attack_identities.toml").open("rb") as file:
        return tomllib.load(file)


def tables(path: Path, delimiter: str = "\t") -> list[dict[str, str]]:
    """The rows of a table."""
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter=delimiter, quoting=quoting))  # type: ignore[call-overload]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
