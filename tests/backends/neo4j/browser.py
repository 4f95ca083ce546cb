"""Neo4j Browser, driven as a person would. Run by itself it takes the pictures of the docs, or,
without a folder, clicks every saved query and prints how its frame ends; exit code 1 if one fails:

NEO4J_PASSWORD=... python -m tests.backends.neo4j.browser HTTP-URL [FOLDER]
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from kgbias.io.resources import resource_path
from kgbias.query.library import write_favourites
from tests.chromium import CHROMIUM_OPTIONS
from tests.waiting import DEADLINE_SECONDS


class Neo4jBrowser:
    """One page of it, connected."""

    def __init__(self, browser: Any, url: str, password: str) -> None:
        self.page = browser.new_page(viewport={"width": 1280, "height": 860})
        self.page.set_default_timeout(DEADLINE_SECONDS * 1000)
        # It asks hosts outside for news; here there are none.
        self.page.route(lambda asked: not asked.startswith(url), lambda route: route.abort())
        self.page.goto(f"{url}/browser/", wait_until="domcontentloaded")
        self.page.fill("[data-testid=username]", "neo4j")
        self.page.fill("[data-testid=password]", password)
        self.page.click("[data-testid=connect]")
        self.page.wait_for_selector("text=You are connected")

    def run(self, text: str) -> None:
        """Type into the editor and run; waits for the answer."""
        frames = self.page.locator("article").count()
        self.page.locator(".monaco-editor textarea").first.focus()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_function(
            "before => document.querySelectorAll('article').length > before", arg=frames
        )
        if ":params" not in text.splitlines()[-1] and not text.startswith(":"):
            self.newest_frame.locator("[data-testid=frame-loaded-contents]").wait_for()

    def drop_queries(self, file: Path) -> None:
        """Drop a zip of saved queries onto the window, and open its folder."""
        self.page.click("[data-testid=navigationFavorites]")
        self.page.evaluate(
            """data => {
              const moved = new DataTransfer(), bytes = new Uint8Array(data);
              moved.items.add(new File([bytes], "queries.zip", { type: "application/zip" }));
              for (const kind of ["dragenter", "dragover", "drop"])
                document.querySelector("#mount > div").dispatchEvent(
                  new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: moved }));
            }""",
            list(file.read_bytes()),
        )
        self.page.click("[data-testid=expandFolder-kgbias]")

    def favourites(self) -> list[str]:
        """The names of the saved queries in that folder, as the list shows them."""
        folder = self.page.locator("[data-testid=savedScriptsFolder-kgbias]")
        return folder.locator("[data-testid^=scriptTitle-]").all_inner_texts()  # type: ignore[no-any-return]

    def run_favourite(self, favourite: str) -> str:
        """Run a saved query by one click; what its frame says."""
        items = self.page.locator("[data-testid=savedScriptListItem]")
        item = items.filter(has=self.page.locator(f"[data-testid='scriptTitle-{favourite}']"))
        item.hover()
        item.locator("[data-testid=savedScriptsButton-Run]").click()
        self.page.wait_for_function(  # the number of frames has a limit
            "begin => document.querySelector('article').innerText.startsWith(begin)",
            arg=":params" if "Parameters" in favourite else f"// {favourite} ",
        )
        end_selector = (
            "[data-testid=frame-loaded-contents], :text('Successfully set'), :text('ERROR')"
        )
        self.newest_frame.locator(end_selector).first.wait_for()
        return str(self.newest_frame.inner_text())

    def nodes(self, min_nodes: int) -> Any:
        """The nodes that the newest frame draws, once there are so many."""
        self.page.wait_for_function(
            "least => document.querySelector('article').querySelectorAll('g.node').length >= least",
            arg=min_nodes,
        )
        return self.newest_frame.locator("g.node")

    @property
    def newest_frame(self) -> Any:
        """The frame of the last answer."""
        return self.page.locator("article").first


def read_query(name: str) -> str:
    """A query of the library, as its file stands."""
    return resource_path("cypher", f"{name}.cypher").read_text(encoding="utf-8")


def click_every_favourite(browser: Neo4jBrowser) -> int:
    """Print what each says; how many failed."""
    with tempfile.TemporaryDirectory() as folder:
        write_favourites(Path(folder) / "queries.zip")
        browser.drop_queries(Path(folder) / "queries.zip")
    failed = 0
    for name in browser.favourites():
        said = browser.run_favourite(name)
        wrong = "ERROR" in said or "Expected parameter" in said
        failed += wrong
        print("FAILED" if wrong else "ok", name, "|", said.strip().splitlines()[-1], flush=True)
    return failed


def main() -> int:
    from playwright.sync_api import sync_playwright

    url = sys.argv[1]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=CHROMIUM_OPTIONS
        )
        browser = Neo4jBrowser(chromium, url, os.environ["NEO4J_PASSWORD"])
        if len(sys.argv) < 3:
            return int(click_every_favourite(browser) > 0)
        folder = Path(sys.argv[2])
        style = (Path(__file__).parents[3] / "docs" / "kgbias.grass").read_text()
        browser.run(":style " + " ".join(style.split()))
        browser.run(
            ':params {group: "Women", other: "Men", run: "demo", arm: null, '
            "min_acceptability: 0.5, limit: 20}"
        )
        browser.run(':config {"autoComplete": false, "allowUserStats": false}')
        browser.run(read_query("shared"))
        browser.page.wait_for_timeout(2_000)
        browser.page.screenshot(path=folder / "neo4j-table.png")
        browser.run(read_query("picture_by_regard"))
        browser.nodes(10)
        browser.page.wait_for_timeout(15_000)  # the drawing settles
        browser.page.screenshot(path=folder / "neo4j-graph.png")
        chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
