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


def test_a_folder_name_tells_the_broker(tmp_path: Path) -> None:
    touch(tmp_path, "node-1/kafka-request.log", "node-2/logs/kafka-request.log", "kafka-broker-03/kafka-request.log.2")
    assert found(tmp_path) == {1: ["kafka-request.log"], 2: ["kafka-request.log"], 3: ["kafka-request.log.2"]}


def test_an_id_before_the_path_wins(tmp_path: Path) -> None:
    touch(tmp_path, "node-1/kafka-request.log")
    assert found(f"42={tmp_path}/node-1") == {42: ["kafka-request.log"]}


def test_a_file_whose_name_looks_like_an_id_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "1=request.log")
    monkeypatch.chdir(tmp_path)
    assert found("1=request.log") == {0: ["1=request.log"]}


def test_arguments_without_any_id_are_counted_around_the_known_ones(tmp_path: Path) -> None:
    touch(tmp_path, "a/kafka-request.log", "b/kafka-request.log", "node-1/kafka-request.log")
    assert found(tmp_path / "a", tmp_path / "node-1", tmp_path / "b") == {i: ["kafka-request.log"] for i in (0, 1, 2)}


def test_one_path_given_twice_is_read_once(tmp_path: Path) -> None:
    touch(tmp_path, "kafka-request.log")
    assert found(tmp_path, tmp_path / "kafka-request.log") == {0: ["kafka-request.log"]}


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
