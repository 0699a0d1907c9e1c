"""Footers of many Parquet files, read at once: in the order of the files, and an error names the file."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import TrafficError
from reconciler.traffic.sources.parquet_parts import footers_of

FILES = 300


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("footers")
    for number in range(FILES):
        pq.write_table(pa.table({"row": range(number)}), folder / f"{number:04}.parquet")
    return sorted(map(str, folder.iterdir()))


def test_several_files_are_read_at_once(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=60)
    read: Any = pq.read_metadata

    def wait_for_another(path: str) -> Any:
        both.wait()
        return read(path)

    monkeypatch.setattr(pq, "read_metadata", wait_for_another)

    assert len(list(footers_of(files[:2]))) == 2


def test_an_unfinished_file_among_many_is_named(files: list[str], tmp_path: Path) -> None:
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(Path(files[-1]).read_bytes()[:-7])

    with pytest.raises(TrafficError, match=f"{cut} is not a Parquet file, or was not finished"):
        list(footers_of([*files[:20], str(cut), *files[20:]]))
