"""The documentation builds into a site without a warning, holds a page for everything, and a dead link stops it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.cli.main import COMMANDS
from reconciler.workflows.explain import explanations

ROOT = Path(__file__).parents[2]


def build(docs: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(docs), str(site)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the site is made of, so that generated pages do not land in the work tree."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("docs", "tools", "schemas", "examples", "deploy", "benchmarks"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "reference"))
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.fixture(scope="module")
def site(checkout: Path) -> Path:
    done = build(checkout / "docs", checkout / "site")
    assert (done.returncode, done.stderr) == (0, "")
    return checkout / "site"


def test_every_command_has_a_chapter_with_its_options(site: Path) -> None:
    page = (site / "reference" / "commands.html").read_text("utf-8")

    assert [name for name in COMMANDS if f'<section id="{name}">' not in page] == []
    assert "--trusted-ref" in page
    assert '<section id="sandbox-start">' in page


def test_every_id_has_an_entry(site: Path) -> None:
    page = (site / "reference" / "ids.html").read_text("utf-8")

    assert [one for one in explanations() if f"<h3>{one}<" not in page] == []


def test_every_schema_has_a_chapter_with_its_required_fields(site: Path) -> None:
    page = (site / "reference" / "documents.html").read_text("utf-8")

    for path in (ROOT / "schemas").glob("*.json"):
        assert f'<section id="{path.name.split(".")[0]}">' in page, path.name
        for field in json.loads(path.read_text("utf-8")).get("required", ()):
            assert f">{field}<" in page, (path.name, field)


def test_a_link_that_leads_nowhere_stops_the_build(site: Path, checkout: Path) -> None:
    page = checkout / "docs" / "opinions.md"
    whole = page.read_text("utf-8")
    for dead in ("[a](no-such-page.md)", "[a](reference/ids.md#no-such-id)", "[a](#no-such-heading)"):
        page.write_text(f"{whole}\n{dead}\n", "utf-8")
        done = build(checkout / "docs", checkout / "site")
        assert done.returncode != 0, dead
        assert "opinions.md" in done.stderr
    page.write_text(whole, "utf-8")
