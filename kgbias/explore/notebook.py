"""The explorer in a notebook."""

import base64
from pathlib import Path
from typing import Any

from kgbias.errors import MissingExtra
from kgbias.io.files import write_text
from kgbias.io.text import CONTENT_WARNING, html

_HEIGHT = 820  # pixels of the frame
_SHOW = """
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    frame.title = "kgbias explorer";
    frame.style = `width: 100%; height: ${model.get("height")}px; border: 1px solid #8884`;
    frame.srcdoc = model.get("page");
    el.append(frame);
  },
};
"""


class Explorer:
    """What `Run.explore` returns: in a notebook, the explorer itself (an anywidget; the page runs
    in a frame of its own, which can reach neither the notebook nor a network), and a picture of
    its map where no script runs.

    Attributes:
        page: the page as HTML.
        picture: its map by group as SVG.
    """

    def __init__(self, page: str, picture: str) -> None:
        self.page, self.picture = page, picture
        self._widget: Any = None

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, whole or not at all; returns its path."""
        write_text(Path(path), self.page)
        return Path(path)

    @property
    def widget(self) -> Any:
        """The anywidget. Raises MissingExtra where anywidget is not installed."""
        if self._widget is None:
            try:
                import anywidget
                import traitlets
            except ImportError as error:
                raise MissingExtra("anywidget", "notebook") from error

            class Page(anywidget.AnyWidget):
                _esm = _SHOW
                page = traitlets.Unicode().tag(sync=True)
                height = traitlets.Int(_HEIGHT).tag(sync=True)

            self._widget = Page(page=self.page)
        return self._widget

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.picture.encode("utf-8", "replace")).decode("ascii")
        return (
            f'<img alt="The map of the run, by group" style="max-width: 100%" '
            f'src="data:image/svg+xml;base64,{data}"><p><small>{html(CONTENT_WARNING)}</small></p>'
        )

    def _repr_mimebundle_(self, **_: Any) -> Any:
        still = {"text/plain": repr(self), "text/html": self._repr_html_()}
        try:
            shown = self.widget._repr_mimebundle_()
        except MissingExtra as error:
            return still | {"text/html": f"{still['text/html']}<p>{html(str(error))}</p>"}
        data, metadata = shown if isinstance(shown, tuple) else (shown, {})
        return {**data, **still}, metadata

    def __repr__(self) -> str:
        return f"<Explorer, {len(self.page) / 1e6:.1f} MB>"
