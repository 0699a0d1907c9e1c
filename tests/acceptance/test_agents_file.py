"""The commands of the AGENTS.md that ``init`` writes run as they stand, and none of them can write to a cluster."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.builders import user
from tests.support.command import invoke, run_script
from tests.support.git_repository import GitRepository
from tests.support.manifests import snapshot

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "examples" / "gitops-repository" / "AGENTS.md").read_text("utf-8")
SCRIPTS = [re.sub(r"^ +", "", block, flags=re.MULTILINE) for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)]
WRITERS = {"apply", "alter", "revert", "run"}


def test_every_command_of_the_file_runs_in_a_new_repository(tmp_path: Path) -> None:
    assert invoke("init", "origin", "--ci", "github", cwd=tmp_path).code == 0
    assert (tmp_path / "origin" / "AGENTS.md").read_text("utf-8") == TEXT
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "snapshot.json").write_text(snapshot({user("payments-api"): {"producer_byte_rate": 1e6}}))
    published, origin = GitRepository(tmp_path / "published"), GitRepository(tmp_path / "origin")
    origin.commit("The quotas")
    published.commit("The state")
    published.git("push", "-q", str(tmp_path / "origin"), "HEAD:refs/kafka-quotas/snapshot/production")
    subprocess.run(["git", "clone", "-q", "origin", "clone"], cwd=tmp_path, check=True)

    done = run_script("".join(SCRIPTS).replace("CLUSTER", "production"), cwd=tmp_path / "clone")

    assert done.code == 0, done.out + done.err
    assert "unknown-quota-key" in done.out
    assert '"digest"' in done.out
