"""A line is added whole or not at all, after whatever a crash left, also by many at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.files import append_line

FULL_AT_64_BYTES = """
import resource, signal, sys
from pathlib import Path
from reconciler.errors import FileAccessError
from reconciler.files import (append_line)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
file = Path(sys.argv[1])
append_line(file, "x" * 40)
try:
    append_line(file, "y" * 40)
except FileAccessError as error:
    append_line(file, "z")
    sys.exit(0 if "cannot append to" in str(error) else 3)
sys.exit(4)
"""
"""A program whose disk is full after 64 bytes a file; one of its own, because the limit holds for a test run's output too."""


def test_lines_follow_one_another(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    for text in ("one", "two", "ü"):
        append_line(file, text)
    assert file.read_bytes() == "one\ntwo\nü\n".encode()


def test_a_torn_last_line_stays_alone_on_its_line(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    file.write_bytes(b'{"a": 1}\n{"b": ')
    append_line(file, "{}")
    append_line(file, "{}")
    assert file.read_bytes() == b'{"a": 1}\n{"b": \n{}\n{}\n'


def test_on_a_full_disk_no_part_of_a_line_is_left(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    assert subprocess.run([sys.executable, "-c", FULL_AT_64_BYTES, str(file)], check=False, timeout=300).returncode == 0
    assert file.read_bytes() == b"x" * 40 + b"\nz\n"


@pytest.mark.bulk
def test_many_processes_at_once_lose_and_mix_nothing(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    program = (
        "import json, os, sys; from pathlib import Path; from reconciler.files import append_line\n"
        "for n in range(50): append_line(Path(sys.argv[1]), json.dumps({'who': os.getpid(), 'n': n, 'pad': 'x' * 5000}))"
    )
    children = [subprocess.Popen([sys.executable, "-c", program, str(file)], env={**os.environ}) for _ in range(4)]
    assert [child.wait(300) for child in children] == [0] * 4
    seen = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted((one["who"], one["n"]) for one in seen) == sorted((c.pid, n) for c in children for n in range(50))
