"""House rules that can be counted: the size and names of modules, suppressions, and what no file may mention."""

import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

import reconciler

ROOT = Path(__file__).parents[2]
PACKAGE = Path(reconciler.__file__).parent
MODULES = sorted({*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")})
SUPPRESSION = re.compile(r"#\s*(noqa|type:\s*ignore|pragma:\s*no cover)\b")
SUPPRESSION_WITH_REASON = re.compile(
    r"#\s*(noqa: [A-Z0-9, ]+?|type: ignore\[[a-z, -]+\]|pragma: no cover)(\s+#\s*|\s+-\s+)(?P<reason>\S.{7,})"
)
MOST_SUPPRESSIONS = 43
"""In the package. Raise it only when every one there is needed, and say why in the commit."""

NEVER_MENTIONED = ["/" + "work/", "repo1." + "maven", "pypi" + ".org", "files." + "pythonhosted", "registry." + "npmjs"]
"""Folders of one machine, and registries: which mirror is used is for the client's own settings to say."""


def suppressions(path: Path) -> list[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    if not SUPPRESSION.search(text):
        return []  # most files: their tokens are not needed
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    return [(line, comment) for line, comment in comments if SUPPRESSION.search(comment)]


def committed_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_module_is_longer_than_500_lines():
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}

    assert len(lengths) > 40
    assert {name: length for name, length in lengths.items() if length > 500} == {}


def test_no_module_is_named_after_nothing_in_particular():
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "context", "console"}

    assert [str(path) for path in MODULES if vague & {path.stem, path.parent.name}] == []


def test_no_module_changes_what_the_whole_process_shares():
    """The umask, the working directory and the user belong to all threads: a file has its mode from the call that makes it."""
    shared = re.compile(r"\bos\.(umask|chdir|setuid|seteuid|setgid)\(|\bgetpass\.")
    found = [str(path) for path in sorted(PACKAGE.rglob("*.py")) if shared.search(path.read_text(encoding="utf-8"))]

    assert found == []


def test_every_suppression_gives_its_reason_on_the_same_line():
    silent = [
        f"{path}:{line}: {comment}"
        for path in MODULES
        for line, comment in suppressions(path)
        if not SUPPRESSION_WITH_REASON.search(comment)
    ]

    assert not silent, "\n".join(silent)


def test_suppressions_in_the_package_stay_few():
    assert 0 < sum(len(suppressions(path)) for path in PACKAGE.rglob("*.py")) <= MOST_SUPPRESSIONS


@pytest.mark.parametrize("mention", NEVER_MENTIONED)
def test_no_committed_file_names_a_machine_s_folder_or_a_registry(mention):
    files = committed_files()

    assert ROOT / "pyproject.toml" in files
    assert [str(path) for path in files if mention.encode() in path.read_bytes()] == []
