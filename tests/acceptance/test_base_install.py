"""Every command where no extra is installed: it does its work, or names the extra that docs/install.md gives it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reconciler.cli.registry import actions_of, commands
from reconciler.errors import PACKAGES
from reconciler.model import Entity
from tests.support.bad_servers import refusing_port
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, snapshot

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
BLOCKED = """
import contextlib, importlib.abc, json, os, pkgutil, sys
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in {modules!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
import reconciler
from reconciler.cli.main import main
from reconciler.errors import MissingPackageError
for module in pkgutil.walk_packages(reconciler.__path__, "reconciler.", onerror=str):
    if not module.name.endswith("__main__"):
        with contextlib.suppress(ImportError, MissingPackageError):
            importlib.import_module(module.name)
codes = {{}}
for name, arguments in json.loads(sys.argv[1]).items():
    child = os.fork()
    if not child:
        sys.stdin.close()
        os.dup2(os.open(name + ".out", os.O_CREAT | os.O_WRONLY), 1)
        os.dup2(os.open(name + ".err", os.O_CREAT | os.O_WRONLY), 2)
        try:
            code = main(arguments)
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        sys.stdout.flush()
        os._exit(code)  # an interpreter's end takes longer than most commands
    codes[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(codes))
"""
"""Exit codes by name: each command in a fork of an interpreter with all modules but these and those that need them."""
NO_BROKER = f"127.0.0.1:{refusing_port()}"
TRAFFIC = ("quotas", "--current", "now.json", "--traffic", "1=request.log")
ARGUMENTS = {
    "init": ("init", "repository"),
    "export": ("export", "--bootstrap-server", NO_BROKER, "--folder", "exported"),
    "sandbox": ("sandbox", "run", "--help"),
    "validate": ("validate", "quotas"),
    "plan": ("plan", "quotas", "--current", "now.json"),
    "backtest": ("backtest", *TRAFFIC),
    "rightsize": ("rightsize", *TRAFFIC),
    "record": ("record", "--traffic", "1=metrics+http://127.0.0.1:1/metrics", "--folder", "history", "--duration", "1"),
    "compact": ("compact", "--traffic", "1=request.log", "--folder", "totals"),
    "tool render": ("tool", "render", "plan.json"),
    "apply": ("apply", "quotas", "--bootstrap-server", NO_BROKER, "--auto-approve"),
    "revert": ("revert", "no-report.json"),
    "alter": ("alter", "--bootstrap-server", NO_BROKER, "--name", "user=a", "--add", "producer_byte_rate=1"),
    "run": ("run", "quotas"),
    "describe": ("describe", "--current", "now.json"),
    "resolve": ("resolve", "--current", "now.json", "--name", "user=alice"),
    "why": ("why", *TRAFFIC, "--name", "user=alice", "--at", "2026-11-22T14:03:00Z"),
    "headroom": ("headroom", *TRAFFIC[:-1], "1=metrics+http://127.0.0.1:1/metrics"),
    "drift": ("drift", "quotas", "--current", "now.json"),
    "report": ("report", "quotas", "--current", "now.json", "--out", "html=page.html"),
    "rules": ("rules", "quotas", "--current", "now.json"),
    "doctor": ("doctor", "quotas"),
    "comment": ("comment", "plan.json", "--pull-request", "1"),
    "tool clusters": ("tool", "clusters", "quotas"),
    "tool verify-ref": ("tool", "verify-ref", "--branch", "refs/heads/main", "--workflow", "apply.yml", "refs/kept"),
    "explain": ("explain", "prune"),
    "tool schema": ("tool", "schema", "plan"),
    "tool completion": ("tool", "completion", "bash"),
}
"""For each command, what it does for most users."""
NAMES = [*(name for name in commands() if name != "tool"), *(f"tool {name}" for name in actions_of("tool"))]


def served() -> dict[str, str | None]:
    """The extra that each command needs, by the table of docs/install.md."""
    text = (ROOT / "docs" / "install.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:`(?P<extra>\w+)`|none) \|[^|]*\|(?P<serves>[^|]*)\|$", text, re.MULTILINE)
    found: dict[str, str | None] = {}
    for extra, serves in rows:
        for command in re.findall(r"`((?:tool )?[a-z-]+)`(?! on GitLab)", serves):
            assert command not in found, command
            found[command] = extra or None
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("base")
    (place / "quotas").mkdir()
    (place / "quotas" / "cluster.yaml").write_text(cluster(connection={"bootstrapServers": [NO_BROKER]}))
    (place / "quotas" / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"})))
    (place / "now.json").write_text(snapshot({Entity.of({"user": "alice"}): {"producer_byte_rate": 2e6}}))
    (place / "request.log").write_text("[2026-11-22 14:00:00,000] DEBUG Completed request:{} (kafka.request.logger)\n")
    (place / "rows").mkdir()
    (place / "rows" / "a.parquet").write_bytes(b"PAR1")
    repository = GitRepository(place)
    repository.git("update-ref", "refs/kept", repository.commit("x\n\nKafka-Quotas-Reference: refs/kept\nKafka-Quotas-Run: 1"))
    return place


@pytest.fixture(scope="module")
def endings(folder: Path) -> dict[str, tuple[int, str]]:
    """The exit code of each command where no extra is installed, and what it prints to stderr."""
    saved = {"saved": ("plan", "quotas", "--current", "now.json", "--out", "json=plan.json")}
    program = BLOCKED.format(modules=sorted(PACKAGES))
    home = {
        "HOME": str(folder),
        "KAFKA_QUOTAS_CACHE": str(folder / "cache"),
        "PATH": "/usr/bin:/bin",
        "GITHUB_TOKEN": "t",
        "GITHUB_REPOSITORY": "o/r",
    }
    command = [sys.executable, "-c", program, json.dumps(saved | ARGUMENTS)]
    done = subprocess.run(command, cwd=folder, env=home, capture_output=True, text=True, timeout=600, check=True)
    codes: dict[str, int] = json.loads(done.stdout)
    assert codes["saved"] == 0, (folder / "saved.err").read_text()
    return {name: (code, (folder / f"{name}.err").read_text()) for name, code in codes.items()}


def test_the_page_says_of_every_command_which_extra_it_needs() -> None:
    assert sorted(served()) == sorted(NAMES)
    assert sorted(ARGUMENTS) == sorted(NAMES)


@pytest.mark.bulk
@pytest.mark.parametrize("command", NAMES)
def test_a_command_without_extras_does_its_work_or_names_the_one_that_the_page_gives_it(
    command: str, endings: dict[str, tuple[int, str]]
) -> None:
    code, told = endings[command]
    named = re.findall(r"Install the extra (\w+) \(kafka-quotas explain install\)", told)

    assert "internal error" not in told
    assert "Traceback" not in told
    assert code != 64, told
    extra = served()[command]
    assert named == ([extra] if extra else []), told
    if extra:
        assert code == 1


def test_the_table_of_packages_is_that_of_the_extras() -> None:
    brought = {extra: {Requirement(text).name for text in texts} for extra, texts in EXTRAS.items()}

    assert {package for package, extra in PACKAGES.values() if package not in brought[extra]} == set()
    optional = brought.keys() - {"dev", "docs", "benchmarks"}
    assert {package for extra in optional for package in brought[extra]} == {package for package, _ in PACKAGES.values()}


def test_no_page_and_no_message_installs_a_package_by_a_name_that_a_stranger_could_take() -> None:
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("reconciler/**/*.py")]
    pages = {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in files if file.name != "CHANGELOG.md"}
    bare = re.compile(r"install[^\n]*kafka-quota-reconciler(?:\[[\w,]+\])?(?! *(?:\[[\w,]+\])? *@ git\+)")
    line = re.compile(r"install '?kafka-quota-reconciler(?:\[[\w,]+\])? @ git\+https://")

    assert [f"{name}: {match[0]}" for name, text in pages.items() for match in bare.finditer(text)] == []
    assert [name for name, text in pages.items() for _ in line.finditer(text)] == ["docs/install.md"]
