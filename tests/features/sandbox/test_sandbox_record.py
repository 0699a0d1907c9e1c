"""The record of the sandbox in the background, and what is made of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import SandboxError
from reconciler.features.sandbox import background, process
from reconciler.features.sandbox.background import SANDBOX, Condition
from reconciler.features.sandbox.command import status_lines, stopped_lines
from reconciler.features.sandbox.process import ProcessRef
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxNode, SandboxSpec, SandboxZooKeeper
from reconciler.render.terminal import plain
from tests.support.schemas import valid

GONE = ProcessRef(pid=2**22 + 1, mark="never was")


def recorded(
    cache: Path, *processes: ProcessRef, users: tuple[Login, ...] = (), zookeeper: SandboxZooKeeper | None = None
) -> Sandbox:
    """A record of nodes that are these processes, with their folders."""
    folder = cache / "data"
    nodes = []
    for number, ref in enumerate(processes, start=1):
        own = folder / f"node-{number}"
        own.mkdir(parents=True)
        nodes.append(SandboxNode(id=number, process=ref, port=20000 + number, log_file=own / "kafka.log", request_log_file=None))
    sandbox = Sandbox(
        bootstrap_servers="127.0.0.1:20001",
        sasl_bootstrap_servers="127.0.0.1:20011" if users else None,
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        kafka_version="4.3.1",
        folder=folder,
        nodes=tuple(nodes),
        users=users,
        zookeeper_server=zookeeper,
    )
    background.write_record(sandbox, background.record_file(cache))
    return sandbox


@pytest.fixture
def sleeper(tmp_path: Path):
    sleep = shutil.which("sleep")
    assert sleep is not None
    ref = process.spawn([sleep, "60"], output=tmp_path / "sleep.log")
    yield ref
    process.end([ref], grace_s=0.0)


def test_a_record_reads_back_as_it_was_written_and_is_for_its_owner_only(tmp_path: Path, sleeper: ProcessRef) -> None:
    sandbox = recorded(tmp_path, sleeper, users=(Login(name="böb", password="s3cret"),))
    file = background.record_file(tmp_path)
    assert background.read_record(file) == sandbox
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 99}', "\x00"])
def test_a_damaged_record_is_named_and_not_touched(tmp_path: Path, content: str) -> None:
    file = background.record_file(tmp_path)
    file.parent.mkdir()
    file.write_text(content)
    for look in (background.sandbox_status, background.stop_sandbox):
        with pytest.raises(SandboxError, match=r"default\.json.*delete the file"):
            look(tmp_path)
    assert file.read_text() == content


def test_a_sandbox_that_lost_a_process_is_broken_said_so_and_cleared_away_by_stop(tmp_path: Path, sleeper: ProcessRef) -> None:
    sandbox = recorded(tmp_path, sleeper, GONE)
    status = background.sandbox_status(tmp_path)
    assert (status.condition, status.alive) == (Condition.BROKEN, {1})
    assert "node 2 has ended" in plain(status_lines(status))
    with pytest.raises(SandboxError, match=r"node-2/kafka\.log.*sandbox stop"):
        background.start_sandbox(SandboxSpec(nodes=3), cache=tmp_path)
    assert "1 of its processes had ended already" in plain(stopped_lines(background.stop_sandbox(tmp_path)))
    assert not process.is_alive(sleeper)
    assert not sandbox.folder.exists()
    assert background.sandbox_status(tmp_path).condition is Condition.STOPPED


def test_stop_removes_what_the_sandbox_made_and_nothing_else(tmp_path: Path) -> None:
    sandbox = recorded(tmp_path, GONE)
    notes = sandbox.folder / "notes.txt"
    notes.write_text("mine")
    background.stop_sandbox(tmp_path)
    assert [path.name for path in sandbox.folder.iterdir()] == ["notes.txt"]


def test_the_document_and_the_text_hold_no_password(tmp_path: Path, sleeper: ProcessRef) -> None:
    recorded(tmp_path, sleeper, users=(Login(name="al/ice\x1b[1m", password="s3cret"),))
    status = background.sandbox_status(tmp_path)
    document: Any = SANDBOX.write(status)
    valid(document, "sandbox")
    text = plain(status_lines(status))
    assert "s3cret" not in json.dumps(document) + text
    assert "\x1b" not in text
    assert os.sep not in Path(document["sandbox"]["users"][0]["client_properties"]).name
