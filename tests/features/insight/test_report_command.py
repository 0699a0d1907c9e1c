"""``kafka-quotas report`` as a user runs it: the page, the document, the exit code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.builders import DEFAULT, client, user
from tests.support.bad_servers import refusing_port
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.pages import part
from tests.support.schemas import valid

PAGE = part("monitor", "Report page")
SHOWN = re.findall(r"^\$ ([^\n]*)\n(.*?)(?=^\$ |^```)", PAGE, re.DOTALL | re.MULTILINE)
LIVE = {user("alice"): {"producer_byte_rate": 2.0}, client(DEFAULT): {"request_percentage": 50.0}}


def document(done: Done) -> dict[str, Any]:
    found = done.json()
    valid(found, "report")
    return dict(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    connection = {"bootstrapServers": [f"127.0.0.1:{refusing_port()}"]}
    (tmp_path / "a.yaml").write_text(cluster("a", prune="never", connection=connection))
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": 1}), owner="team-a"))
    (tmp_path / "live.json").write_text(snapshot(LIVE))
    return tmp_path


def test_a_snapshot_is_shown_against_the_manifests(folder: Path) -> None:
    done = invoke("report", "--current", "live.json", "--out", "html=report.html", cwd=folder)
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "Cluster a differs: 1 entity declared, 2 live (1 differs, 1 unmanaged), read at 2026-01-02 12:00 UTC\n"
        "The page is in report.html\n"
    )
    page = (folder / "report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "user=alice" in page
    (folder / "new").touch()
    assert (folder / "report.html").stat().st_mode == (folder / "new").stat().st_mode


def test_json_has_both_sides_of_every_entity(folder: Path) -> None:
    found = document(invoke("report", "--current", "live.json", "--format", "json", cwd=folder))
    (one,) = found["clusters"]
    assert one["summary"] == {
        "declared": 1,
        "live": 2,
        "drift": {"in-sync": 0, "unapplied": 0, "changed": 0, "missing": 0, "differs": 1, "added": 0, "unmanaged": 1},
    }
    assert [(e["entity"], e["class"], e["declared"], e["live"], e["owner"]) for e in one["entities"]] == [
        ({"user": "alice"}, "differs", {"producer_byte_rate": 1}, {"producer_byte_rate": 2}, "team-a"),
        ({"client-id": None}, "unmanaged", None, {"request_percentage": 50}, None),
    ]
    assert one["entities"][0]["source"]["file"] == "quotas.yaml"


def test_with_detailed_exit_codes_a_difference_is_2_and_unmanaged_entities_are_none(folder: Path) -> None:
    arguments = ("report", "--current", "live.json", "--detailed-exitcode")
    assert invoke(*arguments, cwd=folder).code == 2
    (folder / "live.json").write_text(snapshot({**LIVE, user("alice"): {"producer_byte_rate": 1.0}}))
    assert invoke(*arguments, cwd=folder).code == 0


def test_a_cluster_that_does_not_answer_is_shown_as_such_and_the_exit_code_is_1(folder: Path) -> None:
    (folder / "b.yaml").write_text(cluster("b"))
    done = invoke("report", "--out", "html=report.html", "--detailed-exitcode", "--format", "json", cwd=folder)
    assert done.code == 1
    a, b = document(done)["clusters"]
    assert (a["errored"], a["failure_reason"], a["observed"]) == (True, "unreachable", None)
    assert (b["errored"], b["failure_reason"]) == (True, "usage")
    assert [one["entity"] for one in a["entities"]] == [{"user": "alice"}]
    assert "could not be read" in (folder / "report.html").read_text("utf-8")


def test_the_page_of_before_stays_when_a_new_one_cannot_be_made(folder: Path) -> None:
    (folder / "report.html").write_text("before")
    (folder / "c.yaml").write_text("kind: [")
    assert invoke("report", "--out", "html=report.html", cwd=folder).code == 1
    assert (folder / "report.html").read_text() == "before"


@pytest.mark.kafka
def test_a_real_broker_is_shown_with_what_differs_from_the_manifests(tmp_path: Path, clean_kafka: Sandbox) -> None:
    server = clean_kafka.bootstrap_servers
    (tmp_path / "live.yaml").write_text(cluster("live", connection={"bootstrapServers": [server]}))
    (tmp_path / "gone.yaml").write_text(cluster("gone", connection={"bootstrapServers": [f"127.0.0.1:{refusing_port()}"]}))
    entries = (({"user": name}, {"producer_byte_rate": 1024}) for name in ("alice", "bob"))
    (tmp_path / "quotas.yaml").write_text(quotas(*entries))
    applying = ("apply", "--cluster", "live", "--auto-approve")
    assert invoke(*applying, cwd=tmp_path).code == 0
    change = ("--name", "user=alice", "--add", "producer_byte_rate=4096", "--auto-approve")
    assert invoke("alter", "--bootstrap-server", server, *change, cwd=tmp_path).code == 0
    done = invoke("report", "--out", "html=report.html", "--format", "json", cwd=tmp_path)
    assert done.code == 1
    gone, live = document(done)["clusters"]
    assert (gone["failure_reason"], live.get("failure_reason")) == ("unreachable", None)
    assert (live["observed"]["from"], live["quota_callback"], live["static_defaults"]) == ("broker", None, {})
    assert [(one["entity"]["user"], one["class"], one["live"]) for one in live["entities"]] == [
        ("alice", "differs", {"producer_byte_rate": 4096}),
        ("bob", "in-sync", {"producer_byte_rate": 1024}),
    ]
    assert ">1 differs<" in (tmp_path / "report.html").read_text("utf-8")


def test_one_cluster_s_bad_manifests_leave_the_other_its_report(folder: Path) -> None:
    (folder / "b.yaml").write_text(cluster("b", scope={"include": [{"client-id": {"any": True}}]}))
    done = invoke("report", "--format", "json", "--out", "html=report.html", cwd=folder)
    assert done.code == 1
    assert [one["failure_reason"] for one in document(done)["clusters"]] == ["unreachable", "invalid-manifests"]
    assert (folder / "report.html").exists()


def test_every_command_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "prod.json").write_text(
        snapshot({**LIVE, user("alice"): {"producer_byte_rate": 1.0}, user("bob"): {"producer_byte_rate": 2.0}})
    )
    for folder, servers in (("quotas", ["127.0.0.1:9092"]), ("offline", ["127.0.0.1:1"])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "prod.yaml").write_text(cluster(connection={"bootstrapServers": servers}))
    entries = (({"user": name}, {"producer_byte_rate": 1}) for name in ("alice", "bob"))
    (tmp_path / "quotas" / "quotas.yaml").write_text(quotas(*entries))
    assert len(SHOWN) == PAGE.count("\n$ ") == 2
    for command, printed in SHOWN:
        program, *arguments = shlex.split(command)
        assert program == "kafka-quotas"
        done = invoke(*arguments, cwd=tmp_path)
        assert done.out == printed, command
        assert done.code == (1 if "offline" in command else 0)
        assert (tmp_path / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
