"""What every page that kgbias writes shares: its colours and type, how its template is filled, and
how it names the scripts that it may run."""

import base64
from hashlib import sha256
from pathlib import Path

import jinja2

_STYLE = Path(__file__).with_name("pages.css")


def style(own: str) -> str:
    """A page's style sheet: the shared colours and type, light and dark, then its own."""
    return f"{_STYLE.read_text('utf-8')}{own}"


def environment() -> jinja2.Environment:
    """Templates in which text is escaped, and a name that was not given is an error."""
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)


def allowed(*scripts: str) -> str:
    """The source list of a content security policy that lets these inline scripts run alone."""
    hashes = (base64.b64encode(sha256(script.encode("utf-8")).digest()) for script in scripts)
    return " ".join(f"'sha256-{found.decode()}'" for found in hashes)
