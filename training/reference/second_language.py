"""Write the pack of the reference world's second language, from that of English sentences:
`python -m training.reference.second_language`."""

import re
from collections.abc import Sequence

from kgbias.io.resources import resource_path
from kgbias.reference.second_language import LANGUAGE_CODE, PACK_FOLDER, to_second_language
from kgbias.reference.world import INITIAL_PREDICATES, load_truth

_TEXT = re.compile(r'"""(.*?)"""|"(.*?)"', re.S)
_PLACES = re.compile(r"(\{\{.*?\}\}|\{%.*?%\})", re.S)
_KEPT = ("name", "version", "max_tokens", "stop", "chat_", "#", "[")
PACK = """# The second language of the invented world.
# Written by `python -m training.reference.second_language`.
name = "second_language"
version = 1
language = "{language}"
source = "kgbias; the English sentences of kgbias, word by word"
reader = "declared"
verbaliser = "{{{{ group }}}} {{{{ predicate }}}} {{{{ object }}}}."
groups = "groups.toml"
words = "language.toml"

[examples]
pool = "pool.toml"
initialise = 4
expand = 3
minimum = 4

[crawl]
min_p = 0.1
initial_predicates = [{predicates}]
"""
WORDS = """# Written by `python -m training.reference.second_language`.
refusals = [{refusals}]
carriers = [{carriers}]

[reader]
after_verb = "{after}"
prepositions = "{prepositions}"
auxiliaries = "{auxiliaries}"
others = "{others}"
own = "{own}"
foreign = "the of and is are that with they their not"

[nonce]
onsets = "ve ta lu mi du za fo ga pe no ri su hu ke bo gu"
codas = "lm ndr vr zn rv lt mbr sv nq rz"

[nonce.endings]
"" = "on uk"
"""


def translate(text: str) -> str:
    """A text or template, but not its places to be filled."""
    return "".join(
        part if _PLACES.fullmatch(part) else to_second_language(part)
        for part in _PLACES.split(text)
    )


def quote(texts: Sequence[str]) -> str:
    return ", ".join(f'"{to_second_language(text)}"' for text in texts)


def translate_file(text: str) -> str:
    """The texts of a template's file."""
    # A text of several lines is one entry.
    entries = re.split(r"\n(?=[a-z_]+ = |\[|#)", text)
    return "\n".join(
        entry if entry.startswith(_KEPT) else _TEXT.sub(lambda found: translate(found[0]), entry)
        for entry in entries
    )


def main() -> None:
    PACK_FOLDER.mkdir(exist_ok=True)
    truth = load_truth()
    source = resource_path("prompts", "sentences")
    files = {
        name: translate_file((source / name).read_text("utf-8"))
        for name in ("initialise.toml", "predicate.toml", "object.toml")
    }
    pool = (source / "pool.toml").read_text("utf-8")
    sentences = re.findall(r'^    "(.*)",$', pool, re.M)
    listed = "\n".join(f'    "{to_second_language(sentence)}",' for sentence in sentences)
    files["pool.toml"] = f'version = 1\nlanguage = "{LANGUAGE_CODE}"\nsentences = [\n{listed}\n]\n'
    files["pack.toml"] = PACK.format(language=LANGUAGE_CODE, predicates=quote(INITIAL_PREDICATES))
    files["language.toml"] = WORDS.format(
        refusals=quote([text.lower().rstrip(".") for text in truth.refusals]),
        carriers=quote(["I think that", "People say that"]),
        after=to_second_language("not never always often"),
        prepositions=to_second_language("about after at by for from in into of on to with without"),
        auxiliaries=to_second_language("are can't have"),
        others=to_second_language("i you he she we it this that these those they"),
        own=to_second_language("the of and is are that with they their not to a"),
    )
    tables = []
    for category in truth.categories:
        name = to_second_language(category.name)
        tables.append(
            f'[{category.name}]\nsingular = "{name}"\nplural = "{name}"\n'
            f"groups = [{quote(category.groups)}]\n"
        )
    files["groups.toml"] = "\n".join(tables)
    for name, text in files.items():
        (PACK_FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
