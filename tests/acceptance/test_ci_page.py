"""``docs/ci.md``: its tables are those of the code and the workflows, and its commands are run as written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reconciler.cli.results import DRIFT_FORMATS, PLAN_FORMATS, VALIDATE_FORMATS
from reconciler.features.sandbox.spec import Sandbox
from tests.support.command import run_script
from tests.support.manifests import cluster, quotas

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOWS = ROOT / ".github" / "workflows"


def test_every_reusable_workflow_is_on_the_page_and_writes_what_the_page_says() -> None:
    rows = dict(re.findall(r"^\| `([\w-]+\.yml)` \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE))
    assert set(rows) == {path.name for path in WORKFLOWS.glob("*.yml")} - {"ci.yml", "release.yml"}
    for name, writes in rows.items():
        text = (WORKFLOWS / name).read_text(encoding="utf-8")
        assert ("comment" in writes) == ("pull-requests: write" in text)
        assert ("refs/kafka-quotas" in writes) == ("contents: write" in text)
        assert ("code scanning" in writes) == ("security-events: write" in text)
        assert (writes == "nothing") == (": write" not in text)


def test_the_table_of_formats_is_that_of_the_commands() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (yes|) ?\| (yes|) ?\| (yes|) ?\|", PAGE, re.MULTILINE)
    for column, formats in enumerate((VALIDATE_FORMATS, PLAN_FORMATS, DRIFT_FORMATS), start=1):
        assert {row[0] for row in rows if row[column]} == set(formats)


@pytest.mark.kafka
def test_the_commands_for_anything_else_work_one_after_the_other(tmp_path: Path, clean_kafka: Sandbox) -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas/cluster.yaml").write_text(
        cluster("prod", connection={"bootstrapServers": [clean_kafka.bootstrap_servers]}), encoding="utf-8"
    )
    (tmp_path / "quotas/all.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "9GiB"})), encoding="utf-8")
    done = run_script(script, cwd=tmp_path)
    assert done.code == 0, done.out + done.err
    named = set(re.findall(r"(?:=|report |audit |baseline )([\w-]+\.\w+)", script))
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == named
    assert json.loads((tmp_path / "findings.sarif").read_text())["runs"][0]["results"] == []
