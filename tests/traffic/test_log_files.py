"""Which files an argument means, and whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import TrafficError, UsageError
from reconciler.traffic.sources.log_files import find_logs


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")


def found(*arguments: str | Path) -> dict[int, list[str]]:
    return {b.broker: [Path(f).name for f in b.files] for b in find_logs([str(a) for a in arguments])}


@pytest.mark.parametrize(
    ("files", "arguments", "expected"),
    [
        (
            ["node-1/kafka-request.log", "node-2/logs/kafka-request.log", "kafka-broker-03/kafka-request.log.2"],
            ["."],
            {1: ["kafka-request.log"], 2: ["kafka-request.log"], 3: ["kafka-request.log.2"]},
        ),
        (["node-1/kafka-request.log"], ["42=node-1"], {42: ["kafka-request.log"]}),
        (["1=request.log"], ["1=request.log"], {0: ["1=request.log"]}),
        (
            ["a/kafka-request.log", "b/kafka-request.log", "node-1/kafka-request.log"],
            ["a", "node-1", "b"],
            {number: ["kafka-request.log"] for number in (0, 1, 2)},
        ),
        (["kafka-request.log"], [".", "kafka-request.log"], {0: ["kafka-request.log"]}),
    ],
    ids=["names of folders", "an id before the path", "a file with the name of an id", "counted around known ids", "twice"],
)
def test_arguments_tell_files_and_their_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], arguments: list[str], expected: dict[int, list[str]]
) -> None:
    touch(tmp_path, *files)
    monkeypatch.chdir(tmp_path)
    assert found(*arguments) == expected


def test_data_segments_hidden_and_other_logs_are_left(tmp_path: Path) -> None:
    touch(tmp_path, "kafka-request.log", "server.log", "data/t-0/00000000000000000000.log", ".old/kafka-request.log")
    assert found(tmp_path) == {0: ["kafka-request.log"]}
    (tmp_path / "kafka-request.log").unlink()
    assert found(tmp_path) == {0: ["server.log"]}


def test_a_file_for_two_brokers_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "kafka-request.log")
    with pytest.raises(UsageError, match="for broker 1 and for broker 2"):
        find_logs([f"1={tmp_path}", f"2={tmp_path}"])


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(TrafficError, match="no such file or folder"):
        find_logs([str(tmp_path / "missing")])
    with pytest.raises(TrafficError, match=r"no file whose name contains \.log"):
        find_logs([str(tmp_path)])
    with pytest.raises(UsageError, match="--traffic"):
        find_logs([])


def test_a_compressed_file_under_a_plain_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kafka-request.log").write_bytes(b"\x1f\x8b\x08junk")
    with pytest.raises(TrafficError, match="rename it"):
        find_logs([str(tmp_path)])
