"""A broker that dies, or an answer that is lost, in the middle of an apply: the exit code and the report say how far it came."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from tests.support.bad_servers import WatchingProxy, serving
from tests.support.command import Done, run

pytestmark = pytest.mark.kafka

USERS = 5_500
"""More than one request holds: with one key each, a run validates twice and writes twice."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    entries = "".join(f"    - match: {{user: u{n}}}\n      quotas: {{producer_byte_rate: 1MiB}}\n" for n in range(USERS))
    head = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n"
    (tmp_path / "quotas.yaml").write_text(head + entries)
    return tmp_path


def apply_with(folder: Path, sandbox: Sandbox, *, nth: int, then: Callable[[], None]) -> Done:
    with serving(WatchingProxy(sandbox.nodes[0].port, nth=nth, then=then)) as port:
        server = f"127.0.0.1:{port}"
        return run(
            "apply", "--auto-approve", "--quiet", "--format", "json", "--bootstrap-server", server, cwd=folder, timeout=240
        )


@pytest.fixture
def mortal(start_kafka: Callable[[SandboxSpec], Sandbox]) -> Sandbox:
    return start_kafka(SandboxSpec())


def killing(sandbox: Sandbox) -> Callable[[], None]:
    return lambda: os.kill(sandbox.nodes[0].pid, signal.SIGKILL)


def test_a_broker_killed_between_two_writes_is_exit_4_with_what_was_done(folder: Path, mortal: Sandbox) -> None:
    broken = apply_with(folder, mortal, nth=4, then=killing(mortal))
    assert broken.code == 4, broken.err
    report = broken.json()
    assert report["result"] == "partial"
    assert report["verified"] is False
    counts = report["summary"]
    assert 0 < counts["applied"] < USERS
    assert counts["applied"] + counts["unknown"] + counts["not_attempted"] == USERS
