"""The rules of axe-core against a page in a browser. npm brings it when a test asks for it; the repository has no copy."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from tests.support.chromium import Chromium

VERSION = "4.14.1"
INTEGRITY = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
RUN = """axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
  .then((found) => found.violations.map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]))"""


def axe_script(folder: Path) -> str:
    """The script, fetched into ``folder``; its archive must be the one that was pinned."""
    done = subprocess.run(
        ["npm", "pack", f"axe-core@{VERSION}", "--json", "--silent"], cwd=folder, capture_output=True, text=True, check=True
    )
    (packed,) = json.loads(done.stdout)
    assert packed["integrity"] == INTEGRITY, "npm gave another archive than the pinned one"
    with tarfile.open(folder / packed["filename"]) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode("utf-8")


def violations(browser: Chromium, script: str) -> list[Any]:
    """Rules that the open page breaks, each with the first elements; the page's own policy stays in force for the page."""
    browser.call("Runtime.evaluate", expression=script)
    return list(browser.evaluate(RUN))
