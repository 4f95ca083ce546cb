"""What MkDocs does not do by itself: formulas as MathML, links out of docs/, the command line.

Formulas are written in the pages as LaTeX, which GitHub also renders. When the site is built they
become MathML here, so a page needs no script and no other server to show them.
"""

import html
import posixpath
import re
from pathlib import Path

import click
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

REPOSITORY = "https://github.com/kgbias/kgbias"
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]*)")
_COMMANDS = "<!-- commands -->"
# What a browser would load from another server to show a page; a canonical address is not loaded.
_EXTERNAL = re.compile(
    r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//[^"]*"'
    r'|<link(?![^>]*rel="(?:canonical|alternate)")[^>]+href="(?:https?:)?//[^"]*"'
)


def on_page_markdown(markdown, page, config, files):
    """Point links that leave docs/ at the repository, and list the commands where a page asks."""
    folder = posixpath.dirname(page.file.src_uri)

    def absolute(match):
        path = posixpath.normpath(posixpath.join("docs", folder, match[2]))
        if path == "docs" or path.startswith("docs/"):
            return match[0]
        kind = "tree" if Path(path).is_dir() else "blob"
        return f"{match[1]}{REPOSITORY}/{kind}/main/{path}"

    markdown = _LINK.sub(absolute, markdown)
    return markdown.replace(_COMMANDS, _command_line()) if _COMMANDS in markdown else markdown


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


def _command_line():
    from kgbias.cli import cli

    return "\n\n".join(_describe(cli, click.Context(cli, info_name="kgbias"), level=2))


def _describe(command, context, level):
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            inner = click.Context(below, info_name=name, parent=context)
            yield f"{'#' * level} {inner.command_path}"
            yield f"```text\n{below.get_help(inner)}\n```"
            yield from _describe(below, inner, level + 1)
