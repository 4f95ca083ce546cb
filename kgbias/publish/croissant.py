"""Croissant 1.1 metadata with the fields of its responsible-AI vocabulary, as JSON-LD."""

from pathlib import Path
from typing import Any

from kgbias import __version__
from kgbias.export.tables import INTEGERS
from kgbias.files import sha256_of
from kgbias.publish.card import PARQUET
from kgbias.publish.recipe import STATEMENTS
from kgbias.publish.statement import IMPACT, LIMITS, NO_USES, PERSONAL, USES, Source

# The terms of https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html; mlcroissant wants
# the whole list, also of terms that are not used.
_TERMS = (
    "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileProperty",
    "fileObject", "fileSet", "format", "includes", "isArray", "arrayShape", "isLiveDataset",
    "jsonPath", "key", "md5", "parentField", "path", "readLines", "recordSet", "references",
    "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in _TERMS},
}
_FILES = ((PARQUET, "application/x-parquet"), (STATEMENTS, "application/jsonl"))


def croissant(source: Source, folder: Path) -> dict[str, Any]:
    """The metadata of the files in `folder`."""
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.1",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "name": source.title,
        "description": f"{source.summary} {source.biases}",
        "version": "1.0.0",
        "datePublished": source.created[:10],
        "inLanguage": source.language,
        "keywords": ["bias", "stereotypes", "fairness", "language models"],
        "isLiveDataset": False,
        **({"license": source.license} if source.license else {}),
        "creator": [
            {"@type": "sc:Organization", "name": name} for name in source.authors or ("Not stated",)
        ],
        "citeAs": citation_text(source),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{(folder / name).stat().st_size} B",
                "encodingFormat": kind,
                "sha256": sha256_of(folder / name),
            }
            for name, kind in _FILES
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "statements",
                "name": "statements",
                "description": "The statements, a row for each arm that said one.",
                "key": [{"@id": "statements/id"}, {"@id": "statements/arm"}],
                "field": [_field(source, name, said) for name, said in source.columns.items()],
            }
        ],
        "rai:dataCollection": source.collection,
        "rai:dataCollectionType": "Software Collection",
        "rai:dataPreprocessingProtocol": [source.preprocessing],
        "rai:dataAnnotationProtocol": source.annotation,
        "rai:machineAnnotationTools": [
            f"{m.scorer} {m.version}, through kgbias {__version__}" for m in source.recipe.metrics
        ],
        "rai:dataBiases": [source.biases],
        "rai:dataLimitations": list(LIMITS),
        "rai:dataUseCases": [USES, NO_USES],
        "rai:dataSocialImpact": IMPACT,
        "rai:personalSensitiveInformation": [PERSONAL],
        "rai:hasSyntheticData": True,
    }


def citation_text(source: Source) -> str:
    """The data set as a line of a bibliography."""
    who = ", ".join(source.authors) or "Not stated"
    return f"{who} ({source.created[:4]}). {source.title} [data set]. Made with kgbias."


def _field(source: Source, name: str, description: str) -> dict[str, Any]:
    numbers = {measure.name for measure in source.content.measures}
    kind = "sc:Integer" if name in INTEGERS else "sc:Float" if name in numbers else "sc:Text"
    return {
        "@type": "cr:Field",
        "@id": f"statements/{name}",
        "name": name,
        "description": description,
        "dataType": kind,
        "source": {"fileObject": {"@id": PARQUET}, "extract": {"column": name}},
    }
