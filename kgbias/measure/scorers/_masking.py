"""Replace the mention of a group or a person by a neutral word: no identity may drive a score.

A crawl writes "<Group> <predicate> <object>.", so a plural subject at the start of a sentence is
taken to be the group, whichever group it is: "Irish people drink too much." and "Zorvians drink too
much." both become "They drink too much.". The verb agrees with what it gets: "Women loves music."
becomes "They love music.", as "Non-binary people loves music." does. One person ("The Black man
worked as", "Fatima is", the placeholder XYZ) becomes "This person". Elsewhere in a sentence only
known identities are replaced: "American people hate Mexicans." becomes "They hate people.". Slurs
stay: they carry a judgement of their own.

The rules read English and nothing else; a sentence that fits none of them passes unchanged.
"""

import re

_STOP = frozenset(
    """
    a all also always an and any are as at be because besides both but can clearly could did do does
    each every everyone few for from get has have he her here his how i if in is it its it's just
    lets let's like many may me more most must my never next no nobody nothing nowadays of often on
    only or other others our perhaps quite really she should so some sometimes somebody someone such
    than that that's the their theirs them there there's these they this those thus to typical
    unless us very was we were what what's when where whereas which who whose why will with would
    yes you your yours
    """.split()
)
_VERBS_FIRST = frozenset(
    """
    ban beat burn deport destroy eradicate exterminate fear fuck gas hang hate help hit kick kill
    love praise punish rape respect send shoot stab stop support thank trust welcome
    """.split()
)
_SLURS = frozenset(
    """
    bitches chinks coons cripples cunts dykes faggots fags gooks hoes homos kikes mongs nazis
    niggas niggers pakis ragheads retards scum shemales sluts spastics spics towelheads trannies
    wetbacks whores wogs
    """.split()
)
_PERSON_NOUNS = r"people|folks?|persons|individuals"
_VERBS = (
    r"are|were|can|can't|cannot|could|should|will|must|do|don't|have|love|hate|like|enjoy|believe|"
    r"want|need|know|fear|work|make|drink|eat|help|drive|live|use|tend|often|never|always|get|think"
)
_IRREGULAR_PLURALS = frozenset("people folk children youth clergy police elderly".split())
_NOT_AFTER_SUBJECT = _IRREGULAR_PLURALS | {"of", "men", "women"}

_ADJECTIVES = (
    r"african|african-american|asian|black|white|brown|latinx?|latin[ao]|hispanic|arab|jewish|"
    r"muslim|islamic|christian|catholic|hindu|sikh|buddhist|gay|lesbian|bisexual|queer|straight|"
    r"trans|transgender|transsexual|non-binary|intersex|disabled|deaf|blind|autistic|immigrant|"
    r"refugee|migrant|indigenous|roma|female|male|poor|rich|homeless|elderly|old|young"
)
_DEMONYM = r"[A-Z][a-z]+(?:ian|ean|can|man|ish|ese|ch|tch|ani|aqi|eli)"
_NO_DEMONYM = "This|His|Paris|Chris|Luis|Louis|Boris|Doris|Iris|Denis|Dennis"
_PLURALS = (
    r"gays|lesbians|bisexuals|transsexuals|muslims|jews|christians|catholics|hindus|sikhs|buddhists|"
    r"atheists|immigrants|migrants|refugees|blacks|whites|asians|africans|arabs|latinos|latinas|"
    r"hispanics|foreigners|homosexuals"
)
_SINGULARS = r"lesbian|muslim|jew|christian|hindu|sikh|immigrant|migrant|refugee|foreigner"

_NAMES_IN_S = frozenset(
    """
    agnes alexis anais anders andreas boris carlos charles chris curtis dennis denis doris douglas
    elias frances francis gladys ines iris jacques james jesus jonas jules lars lois louis lucas
    luis marcos marcus mathias mavis moses nicholas nicolas niklas silas thomas tobias travis ulises
    """.split()
)
_NOT_VERBS = frozenset(
    """
    across afterwards always as besides his its less nowadays perhaps sometimes this thus towards us
    yes
    """.split()
)
_AGREEMENT = {
    "is": "are", "was": "were", "has": "have", "does": "do", "isn't": "aren't", "isn’t": "aren’t",
    "wasn't": "weren't", "wasn’t": "weren’t", "hasn't": "haven't", "hasn’t": "haven’t",
    "doesn't": "don't", "doesn’t": "don’t",
}  # fmt: skip
_ADVERB = r"(?:also|always|never|often|only|really|sometimes|still|usually)"
_PLURAL_VERB = frozenset(
    "are were have do can can't cannot could should will would must may love hate".split()
)
_NAME = r"[A-Z][\w’'-]*"
_POSSESSIVE_NAME = re.compile(rf"^{_NAME}(?:[ -]{_NAME})?(?=['’]s (?:\w+ ){{1,4}}(?:is|are|was)\b)")
_NAMED_PERSON = re.compile(
    rf"^{_NAME}(?: {_NAME})?(?=,? (?:{_ADVERB} )?(?:is|isn['’]t|was|wasn['’]t|has|hasn['’]t|had|"
    r"does|doesn['’]t|did|became|began|came|could|earned|ended|found|gave|goes|got|grew|helps|knows|"
    r"left|likes|lived|lives|looks|loves|loved|hates|hated|made|makes|spent|started|takes|thinks|"
    r"told|took|wanted|wants|went|worked|works|would|writes|wrote)\b)"
)
_SOMEONE = re.compile(
    r"^(?:an?|the|this|that|one|my|our|your|his|her|their) (?:[\w’'-]+ ){0,3}?"
    r"(?:person|man|woman|boy|girl|guy|lady|gentleman|teenager|individual)(?=,? [a-z])",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"\b(?:[Tt]he )?XYZ\b(?! people\b)")
_QUALIFIED = re.compile(
    rf"^(?:{_PERSON_NOUNS}|women|men) (?:with|from|in|who are) [\w' -]{{2,30}}? "
    rf"(?=(?:is|was|has|does|(?:{_VERBS})(?:e?s)?)\b)",
    re.IGNORECASE,
)
_LIVES = re.compile(
    rf"\b(?:an? )?(?:{_ADJECTIVES}|(?:wo)?men['’]s) (?=li(?:fe|ves)\b)", re.IGNORECASE
)
_MANY = re.compile(
    rf"\b(?:(?:(?i:{_ADJECTIVES})|{_DEMONYM}) (?i:{_PERSON_NOUNS}|(?:wo)?men)"
    rf"|(?i:{_PLURALS})|(?!(?:{_NO_DEMONYM})\b)(?:{_DEMONYM}|[A-Z][a-z]+i)s)\b"
)
_GENDERED_MANY = re.compile(r"\b(?:wo)?men\b", re.IGNORECASE)
_ONE = re.compile(
    rf"\b(an? )?(?:(?:(?i:{_ADJECTIVES})|{_DEMONYM}) (?i:person|(?:wo)?man)|(?i:{_SINGULARS}))\b"
)
_GENDERED_ONE = re.compile(r"\b(an? )?(?:wo)?man\b", re.IGNORECASE)
# "are not people", "aren't considered persons": whoever is meant, that denies that they are human.
# "They are not people" is also what is made of "Christians are not Muslims", which denies nothing.
_DENIED = re.compile(
    r"\b((?:(?:are|is|were|was) (?:not|never|no|hardly|barely)|(?:are|is|were|was)n['’]t)"
    r"(?: (?:considered|seen as|treated as|treated like|regarded as|really|even|real|full|true))*) "
    r"(?:people|persons|(?:a )?person)(?=[.!]?$)",
    re.IGNORECASE,
)


def neutralise(text: str, *, agree: bool = True) -> str:
    """Return `text` with the mention replaced by "They", "people", "This person" or "a person".

    Args:
        text: an English sentence.
        agree: whether the verb behind "They" is made plural, and two nouns ("Women drivers") are
            taken for one mention; False where the form of the sentence is judged too.
    """
    text = _PLACEHOLDER.sub("this person", " ".join(text.split()))
    text = _DENIED.sub(r"\1 human", text)
    if text.startswith("this person"):
        return "T" + text[1:]
    if one := _one_person(text):
        return "This person" + text[len(one) :]
    subject, rest = _split_subject(_LIVES.sub("their ", text), compounds=agree)
    rest = _MANY.sub("people", rest)
    rest = _ONE.sub(_person, rest)
    if not subject:  # with a subject, "women" and "men" in the object say what it does to whom
        rest = _GENDERED_ONE.sub(_person, _GENDERED_MANY.sub("people", rest))
    sentence = subject + _agree(rest) if subject and agree else subject + rest
    return sentence[:1].upper() + sentence[1:]


def _one_person(text: str) -> str:
    """The mention of one person that the text begins with, or ""."""
    if someone := _SOMEONE.match(text):
        words = someone.group().lower().split()
        return "" if _STOP & set(words[1:]) or _SLURS & set(words) else someone.group()
    for name in (_POSSESSIVE_NAME.match(text), _NAMED_PERSON.match(text)):
        words = name.group().lower().split() if name else []
        if (
            name
            and not _STOP & set(words)
            and (words[-1] in _NAMES_IN_S or not _is_plural(words[-1]))
        ):
            return name.group()
    return ""


def _agree(rest: str) -> str:
    """What follows "They", its first verb made plural: " loves it" becomes " love it"."""
    found = re.match(rf" (?:{_ADVERB} )?([a-z’']+)\b", rest)
    if not found or (verb := found.group(1)) in _NOT_VERBS:
        return rest
    start, end = found.span(1)
    return rest[:start] + _AGREEMENT.get(verb, _without_s(verb)) + rest[end:]


def _without_s(verb: str) -> str:
    if len(verb) < 4 or not verb.endswith("s") or verb.endswith(("ss", "us", "is", "'s", "’s")):
        return verb
    if verb.endswith("ies"):
        return verb[:-3] + "y"
    if re.search("(?:ch|sh|ss|x|zz|o)es$", verb):
        return verb[:-2]
    return verb[:-1]


def _person(match: re.Match[str]) -> str:
    return "a person" if match.group(1) else "person"


def _split_subject(text: str, *, compounds: bool) -> tuple[str, str]:
    """Split off a leading plural subject: ("They", the rest), or ("", text) where there is none."""
    if qualified := _QUALIFIED.match(text):
        return "They", " " + text[qualified.end() :]
    words = text.split(" ")
    start = 1 if words[0].lower() == "the" else 0
    for end in range(start + 1, min(start + 5, len(words))):
        word, following = words[end - 1].lower(), words[end].lower()
        if word in _STOP or word in _SLURS or not re.fullmatch(r"[\w'’-]+", word):
            break
        if end == start + 1 and (word in _VERBS_FIRST or word.endswith("ing")):
            break
        if _is_plural(word) and following not in _NOT_AFTER_SUBJECT:
            after = words[end + 1].lower() if end + 1 < len(words) else ""
            noun = _is_plural(following) and following not in _STOP | _NOT_VERBS
            if compounds and noun and after in _PLURAL_VERB:
                continue  # "Women drivers are": the noun is still to come
            return "They", text[len(" ".join(words[:end])) :]
    return "", text


def _is_plural(word: str) -> bool:
    if word in _IRREGULAR_PLURALS or word.endswith("men"):
        return True
    if word == "trans":  # an adjective: "trans people"
        return False
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "'s", "’s"))
