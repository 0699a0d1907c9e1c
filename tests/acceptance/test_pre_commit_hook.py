"""The hook for pre-commit, run by the real pre-commit on the staged files of a git repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pre_commit.clientlib import load_manifest

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / ".pre-commit-hooks.yaml"
HEAD = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n"
BIN = Path(sys.executable).parent


def quotas(user: str, value: str = "1MiB") -> str:
    return f"{HEAD}    - {{match: {{user: {user}}}, quotas: {{producer_byte_rate: {value}}}}}\n"


class Repository:
    """A git repository with the hook installed as its own entry says, from this environment instead of a new one."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(home),
            "PRE_COMMIT_HOME": str(home / "pre-commit"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example",
        }
        self.run("git", "init", "--quiet")

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=check, timeout=300
        )

    def write(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def commit(self) -> None:
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", "before")

    def hook(self) -> subprocess.CompletedProcess[str]:
        """What pre-commit says of what is staged."""
        self.run("git", "add", "--all")
        return self.run("pre-commit", "run", "--verbose", "--color", "never", check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    made = Repository(tmp_path / "work", tmp_path / "home")
    (hook,) = load_manifest(str(HOOKS))
    kept = {key: hook[key] for key in ("id", "name", "entry", "types", "exclude", "require_serial")}
    configuration = {"repos": [{"repo": "local", "hooks": [{**kept, "language": "system"}]}]}
    made.write(".pre-commit-config.yaml", json.dumps(configuration))
    made.commit()
    return made


def test_the_hook_file_is_one_that_pre_commit_reads() -> None:
    (hook,) = load_manifest(str(HOOKS))

    assert hook["id"] == "kafka-quotas-validate"
    assert hook["language"] == "python"
    assert hook["pass_filenames"]


def test_good_manifests_pass_and_bad_ones_fail_with_their_place(repository: Repository) -> None:
    repository.write("teams/a.yaml", quotas("alice"))
    assert "Passed" in repository.hook().stdout

    repository.write("teams/b.yml", quotas("bob", "1Mb"))
    done = repository.hook()
    assert done.returncode == 1
    assert "teams/b.yml:5:" in done.stdout
    assert "[unknown-unit]" in done.stdout
