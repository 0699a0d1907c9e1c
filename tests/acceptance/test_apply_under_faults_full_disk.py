"""A disk that is full when the audit line, the plan file, the report or the output are due: told, and nothing is half there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support.bad_servers import serving
from tests.support.change_set import APPLY, ChangeSet, new_limits
from tests.support.command import Done
from tests.support.full_disk import FULL, run_with_room
from tests.support.write_proxy import WriteProxy, decoded_alter, reencoded

pytestmark = pytest.mark.kafka

NO_ROOM = "File too large"
FILES = ("cluster.yaml", "quotas.yaml")


@pytest.fixture
def work(tmp_path: Path, clean_kafka: Sandbox) -> ChangeSet:
    return ChangeSet(tmp_path, clean_kafka.bootstrap_servers, wanted=new_limits(20))


def apply(
    work: ChangeSet, room: int, *extra: str, server: int | None = None, streams: Mapping[str, TextIO] | None = None
) -> Done:
    where = work.servers if server is None else f"127.0.0.1:{server}"
    return run_with_room(room, *APPLY, "--bootstrap-server", where, *extra, cwd=work.folder, streams=streams)


def require_done_and_told(work: ChangeSet, done: Done, *said: str) -> None:
    """Everything is on the cluster and in the report on stdout; the exit code says that something is missing, stderr what."""
    assert done.code == 4, done.err
    report = done.json()
    assert (report["result"], report["verified"]) == ("done", True)
    work.require_true(report)
    assert [line for line in done.err.splitlines() if line] == [f"kafka-quotas: {one}" for one in said]


def files(work: ChangeSet) -> list[str]:
    return sorted(path.name for path in work.folder.iterdir() if path.name not in FILES)


def test_no_room_for_the_report_leaves_the_old_one(work: ChangeSet) -> None:
    (work.folder / "report.json").write_text("an old report")
    done = apply(work, 2000, "--report", "report.json", "--audit", "audit.jsonl")
    require_done_and_told(work, done, f"cannot write report.json: {NO_ROOM}")
    assert (work.folder / "report.json").read_text() == "an old report"
    assert json.loads((work.folder / "audit.jsonl").read_text())["result"] == "done"
    assert files(work) == ["audit.jsonl", "report.json"]
    work.finish("--report", "report.json")
    assert json.loads((work.folder / "report.json").read_text())["result"] == "nothing_to_do"


def test_no_room_for_a_whole_audit_line_leaves_none_of_it(work: ChangeSet) -> None:
    earlier = '{"an": "earlier line"}\n'
    (work.folder / "audit.jsonl").write_text(earlier)
    done = apply(work, len(earlier) + 100, "--audit", "audit.jsonl")
    (told,) = re.findall(r"only 100 of \d+ bytes could be written", done.err)
    require_done_and_told(work, done, f"cannot append to audit.jsonl: {told}")
    assert (work.folder / "audit.jsonl").read_text() == earlier
    work.finish("--audit", "audit.jsonl")
    lines = (work.folder / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line).get("result") for line in lines] == [None, "nothing_to_do"]


def refusing_one(_number: int, frame: bytes) -> bytes:
    """A request in which the broker finds one entity to refuse."""
    message = decoded_alter(frame)
    message.entries[0].ops[0].value = 0.0
    return reencoded(message)


@pytest.mark.parametrize("stream", ["stdout", pytest.param("stderr", marks=pytest.mark.large)])
def test_no_room_for_the_output_does_not_change_what_the_exit_code_says_of_the_cluster(
    work: ChangeSet, clean_kafka: Sandbox, stream: str
) -> None:
    with FULL.open("w") as full, serving(WriteProxy(clean_kafka.nodes[0].port, request=refusing_one)) as port:
        broken = apply(work, 10_000_000, "--report", "report.json", server=port, streams={stream: full})
    report = json.loads((work.folder / "report.json").read_text())
    assert (broken.code, report["result"]) == (4, "partial"), broken.err
    work.require_true(report)
    if stream == "stderr":
        assert broken.json() == report
    else:
        assert "cannot print the result: No space left on device" in broken.err
    work.finish()


def test_no_room_for_the_plan_that_is_to_be_approved_writes_nothing(work: ChangeSet) -> None:
    with FULL.open("w") as full:
        spoken = ("apply", ".", "--auto-approve", "--bootstrap-server", work.servers)
        done = run_with_room(10_000_000, *spoken, cwd=work.folder, streams={"stdout": full})
    assert (done.code, done.err) == (1, "kafka-quotas: cannot print the result: No space left on device\n")
    work.require_untouched()
    work.finish()
