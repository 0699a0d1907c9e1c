"""compact counts a line once, in this process and on Spark, and reads files with common lines together."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.command import Command, run
from tests.support.local_traffic import no_spark
from tests.support.placed_totals import stored_seconds
from tests.traffic.conftest import RECORDINGS

if TYPE_CHECKING:
    from reconciler.traffic.seconds.folder import SegmentFolder

*LINES, LAST = gzip.decompress((RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz").read_bytes()).splitlines(keepends=True)
SPARK = pytest.param(("--master", "local[2]"), marks=pytest.mark.spark, id="Spark")
HERE = pytest.param((), id="in process")


def compact(folder: Path, *options: str, out: str = "totals", command: Command = run) -> dict[str, Any]:
    done = command("compact", "--traffic", "7=logs", "--folder", out, "--format", "json", *options, cwd=folder)
    assert (done.code, done.err) == (0, ""), done.err
    return done.json()


def totals(folder: SegmentFolder) -> tuple[list[tuple[Any, ...]], list[tuple[int, ...]]]:
    """Clients with their figures, and all totals of seconds by client."""
    from reconciler.traffic.seconds.stored_rows import open_folder

    stored = open_folder(folder, no_spark)
    clients = [(one.sort_key, one.requests, one.amount, one.largest, one.throttled) for one in stored.series]
    sums: Counter[tuple[Any, ...]] = Counter()
    for client, second, amount in stored_seconds(stored):
        sums[*client, second] += amount
    return clients, sorted((*where, amount) for where, amount in sums.items())


def write_copies(folder: Path) -> None:
    """A log, its second half as rotation cut it, and a compressed copy without the first line, of another broker."""
    logs = folder / "logs"
    logs.mkdir()
    (logs / "kafka-request.log").write_bytes(b"".join(LINES))
    (logs / "kafka-request.log.cut").write_bytes(b"".join(LINES[len(LINES) // 2 :]))
    (folder / "elsewhere-request.log.gz").write_bytes(gzip.compress(b"".join(LINES[1:])))


@pytest.mark.parametrize("options", [HERE, SPARK])
def test_copied_lines_count_once_and_are_reported(
    tmp_path: Path, options: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    from reconciler.traffic.seconds.folder import SegmentFolder

    (tmp_path / "alone" / "logs").mkdir(parents=True)
    (tmp_path / "alone" / "logs" / "kafka-request.log").write_bytes(b"".join(LINES))
    alone = compact(tmp_path / "alone")
    assert alone["copies"] == 0

    write_copies(tmp_path)
    # Only the parameter that asks for Spark starts the session.
    command: Command = request.getfixturevalue("warm_command") if options else run
    found = compact(tmp_path, "--traffic", "8=elsewhere-request.log.gz", *options, command=command)
    assert found["requests"] == alone["requests"] > 1000
    marked = sum(b"Completed request:" in line for line in [*LINES[1:], *LINES[len(LINES) // 2 :]])
    assert 0.5 * marked < found["copies"] <= marked
    assert totals(SegmentFolder(tmp_path / "totals")) == totals(SegmentFolder(tmp_path / "alone" / "totals"))


def test_files_with_common_lines_are_read_together_when_one_grows(tmp_path: Path) -> None:
    from reconciler.traffic.seconds.folder import SegmentFolder

    write_copies(tmp_path)
    first = compact(tmp_path)
    cut = tmp_path / "logs" / "kafka-request.log.cut"
    with cut.open("ab") as stream:
        stream.write(LAST)
    again = compact(tmp_path)
    assert len(again["compacted"]) == 2
    assert again["requests"] <= first["requests"] + 2
    assert totals(SegmentFolder(tmp_path / "totals"))[0] == totals(fresh(tmp_path))[0]

    with cut.open("ab") as stream:
        stream.write(LINES[0])
    (tmp_path / "logs" / "kafka-request.log").rename(tmp_path / "gone")
    alone = run("compact", "--traffic", "7=logs", "--folder", "totals", cwd=tmp_path)
    assert (alone.code, alone.out) == (64, "")
    assert "kafka-request.log.cut has lines in common with kafka-request.log, compacted earlier: give both files" in alone.err


def fresh(folder: Path) -> SegmentFolder:
    from reconciler.traffic.seconds.folder import SegmentFolder

    compact(folder, out="fresh")
    return SegmentFolder(folder / "fresh")


@pytest.mark.spark
@pytest.mark.parametrize("form", ["logs", "parquet"])
def test_this_process_and_spark_write_the_same_bytes(tmp_path: Path, form: str, warm_command: Command) -> None:
    from tests.support import all_kinds

    logs = tmp_path / "logs"
    logs.mkdir()
    options: tuple[str, ...] = ("--max-unreadable", "2%")
    if form == "logs":
        (logs / "kafka-request.log").write_bytes(b"".join(LINES))
    else:
        all_kinds.write(logs / "all.parquet", all_kinds.rows())
    for out, where in (("here", ()), ("spark", ("--master", "local[2]"))):
        traffic = "7=logs" if form == "logs" else "logs"
        done = warm_command("compact", "--traffic", traffic, "--folder", out, *options, *where, cwd=tmp_path)
        assert (done.code, done.err) == (0, ""), done.err
    here, spark = content(tmp_path / "here"), content(tmp_path / "spark")
    assert here == spark
    assert sum(name.endswith(".parquet") for name in here) >= 2


def content(root: Path) -> dict[str, object]:
    """By path, without the run's id: bytes of Parquet files, the values of documents."""
    found: dict[str, object] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = str(path.relative_to(root))
        if path.suffix == ".json":
            document = json.loads(path.read_text())
            found[name] = document | {"folder": document["folder"][:24]}
        else:
            folder = path.relative_to(root).parts[1]
            found[name.replace(folder, folder[:24])] = path.read_bytes()
    return found
