"""``kafka-quotas report`` as a user runs it: the page, its summary, the exit code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.builders import DEFAULT, client, user
from tests.support.bad_servers import refusing_port
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.pages import part

PAGE = part("monitor", "Report page")
SHOWN = re.findall(r"^\$ ([^\n]*)\n(.*?)(?=^\$ |^```)", PAGE, re.DOTALL | re.MULTILINE)
LIVE = {user("alice"): {"producer_byte_rate": 2.0}, client(DEFAULT): {"request_percentage": 50.0}}


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
    assert done.out == "Cluster a differs: 1 entity declared, 2 live (1 differs, 1 unmanaged), read at 2026-01-02 12:00 UTC\n"
    page = (folder / "report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "user=alice" in page
    (folder / "new").touch()
    assert (folder / "report.html").stat().st_mode == (folder / "new").stat().st_mode


def test_with_detailed_exit_codes_a_difference_is_2_and_unmanaged_entities_are_none(folder: Path) -> None:
    arguments = ("report", "--current", "live.json", "--detailed-exitcode")
    assert invoke(*arguments, cwd=folder).code == 2
    (folder / "live.json").write_text(snapshot({**LIVE, user("alice"): {"producer_byte_rate": 1.0}}))
    assert invoke(*arguments, cwd=folder).code == 0


def test_clusters_that_do_not_answer_or_have_bad_manifests_are_shown_as_such_and_the_exit_code_is_1(folder: Path) -> None:
    (folder / "b.yaml").write_text(cluster("b", scope={"include": [{"client-id": {"any": True}}]}))
    (folder / "c.yaml").write_text(cluster("c"))
    done = invoke("report", "--out", "html=report.html", "--detailed-exitcode", cwd=folder)
    assert done.code == 1
    assert re.findall(r"^Cluster (\w) could not be read: ", done.out, re.MULTILINE) == ["a", "b", "c"]
    page = (folder / "report.html").read_text("utf-8")
    assert "user=alice" in page
    assert all(f"({reason})" in page for reason in ("unreachable", "invalid-manifests", "usage"))


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
    done = invoke("report", "--out", "html=report.html", cwd=tmp_path)
    assert done.code == 1
    gone, live = done.out.splitlines()[:2]
    assert gone.startswith("Cluster gone could not be read: ")
    assert live.startswith("Cluster live differs: 2 entities declared, 2 live (1 in sync, 1 differs), read at ")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert ">1 differs<" in page
    assert "from its brokers" in page


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
