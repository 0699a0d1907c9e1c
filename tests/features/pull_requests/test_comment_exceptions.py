"""What a reviewer copies out of a comment, and what a comment says of a deletion that removes nothing."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import yaml

from tests.builders import user
from tests.support.command import invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, repository, snapshot
from tests.support.markdown_views import by_github

HOSTILE = 'a"b`: {x}'
LIVE = {user(name): {"producer_byte_rate": 1e6} for name in ("alice", "bob", HOSTILE)}


def planned(folder: Path, *rates: tuple[str, int], accept: object = (), code: int = 0) -> str:
    """The comment on manifests with these rates, while the cluster has 1 MB/s for each user since years."""
    (folder / "quotas").mkdir(exist_ok=True)
    (folder / "quotas/cluster.yaml").write_text(cluster(prune="never", accept=accept))
    (folder / "quotas/all.yaml").write_text(quotas(*(({"user": name}, {"producer_byte_rate": rate}) for name, rate in rates)))
    (folder / "now.json").write_text(snapshot(LIVE))
    done = invoke("plan", "quotas", "--current", "now.json", "--out", "json=plan.json", cwd=folder)
    assert done.code == code, done.err + done.out
    return invoke("comment", "plan.json", "--dry-run", cwd=folder).out if code == 0 else done.out + done.err


def copied(text: str) -> list[dict[str, Any]]:
    match = re.search(r"(`{3,})yaml\n(.*?)\n\1", text, re.DOTALL)
    assert match is not None, text
    return yaml.safe_load(match[2])["accept"]


def test_an_exception_to_copy_is_about_its_entities_has_a_day_to_come_and_needs_a_reason(tmp_path: Path) -> None:
    rows = copied(planned(tmp_path, ("alice", 1000), (HOSTILE, 1000)))
    today = datetime.datetime.now(tz=datetime.UTC).date()
    assert [(row["guard"], row["match"]) for row in rows] == [
        ("large-reduction", {"user": name, "strict": True}) for name in ("alice", HOSTILE)
    ] or [(row["guard"], row["match"]) for row in rows] == [
        ("large-reduction", {"user": name, "strict": True}) for name in (HOSTILE, "alice")
    ]
    assert all(datetime.timedelta(12) < row["until"] - today <= datetime.timedelta(14) for row in rows)
    assert [row["reason"] for row in rows] == [None, None]
    as_it_is = [{**row, "until": str(row["until"])} for row in rows]
    assert "'reason'" in planned(tmp_path, ("alice", 1000), accept=as_it_is, code=1)
    written = [{**row, "reason": "agreed with the team."} for row in as_it_is]
    accepted = planned(tmp_path, ("alice", 1000), (HOSTILE, 1000), accept=written)
    assert "2 accepted" in accepted or "1 accepted" in accepted
    assert "needs acceptance" not in accepted
    assert ".." not in accepted.partition("Accepted in the manifest")[2][:60]
    # Pasted, it opens the guard for no other client.
    other = planned(tmp_path, ("alice", 1000), ("bob", 1000), accept=written)
    assert "1 needs acceptance" in other
    assert [row["match"] for row in copied(other)] == [{"user": "bob", "strict": True}]


def test_a_deletion_that_removes_nothing_is_headed_so_and_has_a_row(tmp_path: Path) -> None:
    work = GitRepository(tmp_path / "work")
    work.write("cluster.yaml", cluster(prune="never"))
    work.write(
        "a.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 1_000_000}), ({"user": "bob"}, {"request_percentage": 5}))
    )
    work.commit()
    work.write("a.yaml", quotas(({"user": "bob"}, {"request_percentage": 5})))
    live = {user("alice"): {"producer_byte_rate": 1e6}, user("bob"): {"request_percentage": 5.0}}
    (tmp_path / "now.json").write_text(snapshot(live))
    done = invoke("plan", ".", "--current", "../now.json", "--trusted-ref", "main", "--out", "json=../plan.json", cwd=work.folder)
    assert done.code == 0, done.err
    shown = invoke("comment", "plan.json", "--dry-run", cwd=tmp_path)
    seen = by_github(shown.out)
    assert "Kafka quotas for prod: not removed" in seen.text()
    assert [row[1:] for row in seen.rows[1:]] == [
        ["alice producer", "976.6\N{NO-BREAK SPACE}KiB/s (1,000,000\N{NO-BREAK SPACE}B/s): stays (prune: never)"]
    ]
    assert "To remove 1 kept limit, declare the entity with quotas: {}." in seen.text()
    assert "The plan writes nothing" in seen.text()
    assert "not checked" not in seen.text()


def test_a_plan_names_all_errors_that_validation_names(tmp_path: Path) -> None:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas/kafka-quotas.yaml").write_text(repository(limits=[{"request_percentage": {"max": 400}}]))
    (tmp_path / "quotas/cluster.yaml").write_text(cluster())
    rates = {"producer_byte_rate": "20XiB", "request_percentage": 401}
    (tmp_path / "quotas/a.yaml").write_text(quotas(({"user": "a"}, rates), ({"user": "b"}, {"request_percentage": 402})))
    (tmp_path / "now.json").write_text(snapshot({}))
    assert invoke("validate", "quotas", cwd=tmp_path).out.count(": error: ") == 3
    done = invoke("plan", "quotas", "--current", "now.json", "--out", "json=plan.json", cwd=tmp_path)
    assert done.code == 1
    assert "**3 findings are errors**" in invoke("comment", "plan.json", "--dry-run", "--cluster", "prod", cwd=tmp_path).out
