"""What MkDocs does not do by itself: formulas as MathML, links out of docs/, and the parts of pages
that the code knows: the commands, the parameters of a crawl, the graph's shape, the queries, the
guides for labelling, the kinds of servers that were tried, what is read of tables.

Formulas are written in the pages as LaTeX, which GitHub also renders. When the site is built they
become MathML here, so a page needs no script and no other server to show them.
"""

import html
import posixpath
import re
import sys
from pathlib import Path

import click
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

sys.path.insert(0, str(Path(__file__).parent.parent))  # tests and scripts, which say some of it

REPOSITORY = "https://github.com/kgbias/kgbias"
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]*)")
_MARK = re.compile(r"^<!-- (\w+) -->$", re.MULTILINE)
# What a browser would load from another server to show a page; a canonical address is not loaded.
_EXTERNAL = re.compile(
    r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//[^"]*"'
    r'|<link(?![^>]*rel="(?:canonical|alternate)")[^>]+href="(?:https?:)?//[^"]*"'
)


def on_config(config):
    """List the pages of docs/methods that mkdocs.yml does not name, those of methods, last."""
    (pages,) = (entry["Methods"] for entry in config["nav"] if "Methods" in entry)
    folder = Path(config["docs_dir"])
    found = sorted(path.relative_to(folder).as_posix() for path in folder.glob("methods/*.md"))
    pages += [page for page in found if page not in pages]
    return config


def on_page_markdown(markdown, page, config, files):
    """Point links that leave docs/ at the repository, and write what the code knows where a page
    has its mark, such as <!-- commands -->."""
    folder = posixpath.dirname(page.file.src_uri)

    def absolute(match):
        path = posixpath.normpath(posixpath.join("docs", folder, match[2]))
        if path == "docs" or path.startswith("docs/"):
            return match[0]
        kind = "tree" if Path(path).is_dir() else "blob"
        return f"{match[1]}{REPOSITORY}/{kind}/main/{path}"

    markdown = _LINK.sub(absolute, markdown)
    return _MARK.sub(lambda match: _write_part(match[1], page.file.src_uri), markdown)


def on_page_content(content, page, config, files):
    def formula(match):
        display = "block" if match[2] == "[" else "inline"
        mathml = convert(html.unescape(match[3]).strip(), display=display)
        return f'<div class="formula">{mathml}</div>' if display == "block" else mathml

    return _FORMULA.sub(formula, content)


def on_post_page(output, page, config):
    """Refuse a page that would ask another server for anything."""
    if found := _EXTERNAL.findall(output):
        raise PluginError(f"{page.file.src_uri} loads from another server: {found[0]}")
    return output


def _write_part(name, page):
    from scripts import doors

    writers = {
        "commands": _command_line,
        "crawl": _crawl_parameters,
        "shape": _graph_shape,
        "queries": _query_library,
        "guides": _label_guides,
        "servers": _server_kinds,
        "methods": _methods,
        "doors": lambda: "\n".join(doors.table_rows()),
        "memory": lambda: "\n".join(doors.in_python()),
    }
    if name not in writers:
        raise PluginError(f"{page} has the mark <!-- {name} -->; there are {', '.join(writers)}")
    return writers[name]()


def _crawl_parameters():
    from kgbias.cli.crawl import DEFAULT_PACK_CRAWL
    from kgbias.cli.options import describe_default
    from kgbias.crawl.config import CrawlConfig
    from kgbias.parameters import declared_parameters

    rows = []
    for parameter in declared_parameters(CrawlConfig).values():
        about = parameter.about
        name = f"{'--' if about.typed else ''}{parameter.option_name}"
        default = describe_default(parameter, DEFAULT_PACK_CRAWL)
        rows.append(f"| `{name}` | {default} | {about.source} | {about.help} |")
    return "\n".join(
        ["| option or setting | default | source | meaning |", "|---|---|---|---|", *rows]
    )


def _graph_shape():
    from kgbias.graph.shape import describe_shape

    return describe_shape()


def _query_library():
    import kgbias

    rows = [
        f"| `{query.name}` | {query.help} | {', '.join(f'`{p.name}`' for p in query.parameters)} |"
        for query in kgbias.queries()
    ]
    return "\n".join(["| query | answers | parameters |", "|---|---|---|", *rows])


def _server_kinds():
    from tests.server_kinds import outcome_table

    return outcome_table()


def _methods():
    from kgbias.methods import list_methods

    return "\n".join(f"::: kgbias.methods.{name}" for name in list_methods())


def _label_guides():
    from kgbias.methods.labels.labelling import read_guide

    measures = sorted(path.stem for path in Path("kgbias/methods/labels/guides").glob("*.toml"))
    return "\n\n".join(_describe_guide(read_guide(measure)) for measure in measures)


def _describe_guide(guide):
    labels = [
        f"| {key} | {label.name} | {label.meaning} | {' '.join(label.examples)} |"
        for key, label in enumerate(guide.labels, start=1)
    ]
    return "\n".join(
        [
            f"### {guide.id}",
            "",
            guide.question,
            "",
            "| key | label | meaning | examples |",
            "|---|---|---|---|",
            *labels,
            "",
            *(f"- {rule}" for rule in guide.rules),
        ]
    )


def _command_line():
    from kgbias.cli import cli

    context = click.Context(cli, info_name="kgbias")
    top = f"## kgbias\n\n```text\n{cli.get_help(context)}\n```"
    return "\n\n".join([top, *_describe(cli, context, level=2)])


def _describe(command, context, level):
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            inner = click.Context(below, info_name=name, parent=context)
            yield f"{'#' * level} {inner.command_path}"
            yield f"```text\n{below.get_help(inner)}\n```"
            yield from _describe(below, inner, level + 1)
