"""`run.explore()` in a notebook: what a kernel hands over, and what a browser makes of it."""

import json
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

import kgbias
from kgbias.explore import page as explorer
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Group
from tests.report_data import measured_run
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.integration

GROUPS = (Group("Women", "gender"), Group("Men", "gender"))
DRIVER = "GPU stall due to ReadPixels"  # what software rendering says of itself


def test_a_kernel_hands_over_a_widget_and_a_picture(store: SQLiteStore) -> None:
    run = measured_run(store, GROUPS, ["food", "rain"])
    opened = f"import kgbias\nrun = kgbias.open({store.url!r}).run({run.name!r})"
    cells = [opened, "run.explore()", "run", "run.figure('Women', 'overall_regard')"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(book, timeout=DEADLINE_SECONDS, kernel_name="python3").execute()
    shown = [[o for o in c.outputs if o.output_type == "execute_result"] for c in book.cells]
    ((explorer,), (table,), (figure,)) = shown[1:]
    assert "application/vnd.jupyter.widget-view+json" in explorer.data
    assert "data:image/svg+xml;base64," in explorer.data["text/html"]
    assert "measured" in table.data["text/html"] and "overall regard" in figure.data["text/html"]


def test_the_widget_shows_the_page(chromium: Any, store: SQLiteStore, tmp_path: Path) -> None:
    run = measured_run(store, GROUPS, ["food", "</script><script>window.pwned=1</script>"])
    with kgbias.open(store.url, progress=False) as study:
        shown = study.run(run.name).explore()
    model = json.dumps({"page": shown.page, "height": 600}).replace("</", "<\\/")
    script = explorer._WIDGET_SCRIPT.replace("export default", "const widget =")
    host = tmp_path / "host.html"
    host.write_text(
        f"<!doctype html><meta charset='utf-8'><body><script type='module'>{script}"
        f"const model = {model}; widget.render({{ model: {{ get: (name) => model[name] }}, "
        "el: document.body });</script>",
        encoding="utf-8",
    )
    page, wrong = chromium.new_page(), []
    page.on("console", lambda m: None if DRIVER in m.text else wrong.append(m.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(host.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready]").wait_for(state="attached")
    frame.locator("#show").click()
    frame.locator("#body tr").first.click()
    frame.locator("#details h4:has-text('Answered')").first.wait_for()
    assert wrong == [] and page.evaluate("window.pwned === undefined")
    page.close()
