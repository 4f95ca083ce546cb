"""What all pages of kgbias share: colours and type, pictures and tables of statements (`page/`),
how their templates are filled, and how they name the scripts that they may run.

The report and the explorer share them. A page gives each statement a number, fills the columns that
`page/statements.js` names, and keeps a `state` that its controls, pictures and tables read.
"""

import base64
from hashlib import sha256
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

STATEMENT_SCRIPTS = ("draw", "statements", "pictures", "table")
"""The scripts of `page/`: a page that draws statements has them all, before its own."""


def read_asset(package: str, *path: str) -> str:
    """The text of a file that ships in a package."""
    return files(package).joinpath(*path).read_text("utf-8")


def read_shared_scripts(*names: str) -> list[str]:
    """The texts of scripts of `page/`."""
    return [read_asset("kgbias.io", "page", f"{name}.js") for name in names]


def page_style(own_style: str) -> Markup:
    """A page's style sheet: the shared colours and type, light and dark, then its own."""
    return Markup(read_asset("kgbias.io", "page", "style.css") + own_style)


def bundle_scripts(*scripts: str) -> Markup:
    """Several script files as one script: they share their names with each other, and with nothing
    else."""
    return Markup("\n".join(['"use strict";', "(() => {", *scripts, "})();"]))


def fill_template(template: str, **values: Any) -> str:
    """A template filled with values. Text is escaped, and a missing name is an error."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(template).render(values)


def script_policy(*scripts: str) -> str:
    """The source list of a content security policy that lets only these inline scripts run."""
    # A browser runs an inline script only if its hash is in the policy (CSP level 2).
    digests = (base64.b64encode(sha256(script.encode("utf-8")).digest()) for script in scripts)
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
