"""The hook for pre-commit, run by the real pre-commit on the staged files of a git repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pre_commit.clientlib import load_manifest

from tests.support.git_repository import GitRepository
from tests.support.manifests import quotas

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / ".pre-commit-hooks.yaml"
BIN = Path(sys.executable).parent


class Repository(GitRepository):
    """A git repository with the hook installed as its own entry says, from this environment instead of a new one."""

    def hook(self, home: Path) -> subprocess.CompletedProcess[str]:
        """What pre-commit says of what is staged."""
        self.git("add", "--all")
        path = f"{BIN}:{os.environ['PATH']}"
        variables = {**os.environ, "PATH": path, "HOME": str(home), "PRE_COMMIT_HOME": str(home / "pre-commit")}
        command = ["pre-commit", "run", "--verbose", "--color", "never"]
        return subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "work")
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


def test_good_manifests_pass_and_bad_ones_fail_with_their_place(repository: Repository, tmp_path: Path) -> None:
    repository.write("teams/a.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"})))
    assert "Passed" in repository.hook(tmp_path).stdout

    repository.write("teams/b.yml", quotas(({"user": "bob"}, {"producer_byte_rate": "1Mb"})))
    done = repository.hook(tmp_path)
    assert done.returncode == 1
    assert "teams/b.yml:4:" in done.stdout
    assert "[unknown-unit]" in done.stdout
