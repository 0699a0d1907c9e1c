"""What people see at a terminal of 40 and of 80 columns, in colour and without."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.render.terminal import cells
from tests.builders import user
from tests.support.command import run
from tests.support.manifests import snapshot
from tests.support.terminal import Terminal

SGR = re.compile(r"\x1b\[[0-9;]*m")
MANIFESTS = """
apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {name: prod}
spec: {scope: {include: [{user: {any: true}}]}, prune: never}
---
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: team}
spec:
  quotas:
    - match: {user: payments-service-of-the-european-region}
      quotas: {producer_byte_rate: 10MB, consumer_byte_rate: 40MiB}
      note: agreed with the team that owns the settlement run at the end of each month
    - match: {user: "決済チーム🙂"}
      quotas: {request_percentage: 50}
    - match: {user: alice}
      quotas: {producer_byte_rate: 1MiB}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "team.yaml").write_text(MANIFESTS, encoding="utf-8")
    state = {
        user("alice"): {"producer_byte_rate": 8388608.0},
        user("決済チーム🙂"): {"consumer_byte_rate": 10000000.0, "request_percentage": 150.0},
        user("x" * 20_000): {"consumer_byte_rate": 1000.0},
    }
    (tmp_path / "now.json").write_text(snapshot(state), encoding="utf-8")
    return tmp_path


COMMANDS = {
    "plan": ("plan", "quotas", "--current", "now.json", "--show-effects"),
    "drift": ("drift", "quotas", "--current", "now.json"),
    "describe": ("describe", "--current", "now.json"),
    "resolve": ("resolve", "--current", "now.json", "--name", "user=alice", "--name", "client-id=app"),
}


def rows_at(folder: Path, command: str, columns: int, **variables: str) -> list[str]:
    terminal = Terminal(folder, *COMMANDS[command], columns=columns, env=variables)
    assert terminal.end() == 0, terminal.seen
    return terminal.seen.replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_row_is_wider_than_the_terminal(folder: Path, command: str, columns: int) -> None:
    rows = rows_at(folder, command, columns, TERM="xterm")
    assert [row for row in rows if cells(SGR.sub("", row)) > columns] == []
    assert any("\x1b[" in row for row in rows)


def test_describe_is_a_table_with_units_on_a_terminal_and_text_in_a_pipe(folder: Path) -> None:
    rows = rows_at(folder, "describe", 80, NO_COLOR="1")
    assert rows[0].split() == ["entity", "key", "limit"]
    assert rows[1].split() == ["user=alice", "producer_byte_rate", "8", "MiB/s"]
    assert any(row.endswith("consumer_byte_rate  9.537 MiB/s (10,000,000 B/s)") for row in rows)
    piped = run(*COMMANDS["describe"], cwd=folder)
    assert piped.out.startswith("{user=alice}\n  producer_byte_rate=8388608\n")
    assert run(*COMMANDS["describe"], "--format", "table", cwd=folder).out.splitlines()[0].startswith("entity")
