"""Changes that take several requests, and the proof that whatever was said about them agrees with what the brokers hold.

A request of this tool takes 1 MiB, which 34 names of 30,000 letters fill. A test's request takes 34 names of 1,000 letters,
except with ``whole_requests``.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support import manifests, raw_quotas, small_requests
from tests.support.command import Done, run, running
from tests.support.raw_quotas import RawEntity
from tests.support.schemas import valid

State = Mapping[RawEntity, Mapping[str, float]]

APPLY = (
    "apply",
    ".",
    "--auto-approve",
    "--quiet",
    "--format",
    "json",
    "--accept",
    "large-reduction",
    "--accept",
    "too-many-changes",
    "--accept",
    "too-many-removals",
)
SMALL: Final = 1_000
LARGE: Final = 30_000
"""Letters of the names of ``mixed``."""
SMALL_REQUEST: Final = 39_000
"""Bytes: 34 entities of names that are ``SMALL``, and ``LAST``."""
PRODUCE, CONSUME, PERCENT = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
LAST = "zz-last"
"""A user with a short name, in the request that is written last."""


def user(name: str) -> RawEntity:
    """A user's own entity."""
    return frozenset({("user", name)})


def new_limits(count: int) -> dict[RawEntity, dict[str, float]]:
    """Limits for users that had none: two keys each, and ``LAST``."""
    names = [*(f"{n:04}-new" for n in range(count - 1)), LAST]
    return {user(name): {PRODUCE: 1_500_000.0 + n, CONSUME: 2_500_000.0 + n} for n, name in enumerate(names)}


def mixed(
    requests: int = 3, *, team: str = "", letters: int = SMALL
) -> tuple[dict[RawEntity, dict[str, float]], dict[RawEntity, dict[str, float]]]:
    """What is there and what is wanted: higher limits (written first), then ones that go down, lose a key, or are new."""
    before: dict[RawEntity, dict[str, float]] = {}
    wanted: dict[RawEntity, dict[str, float]] = {}
    for n in range(requests * 34):
        name = user(f"{team}{n:04}-{('looser', 'tighter', 'new')[n % 3]}".ljust(letters, "x"))
        if n % 3 < 2:
            before[name] = {PRODUCE: 1_500_000.0, CONSUME: 2_500_000.0}
        wanted[name] = (
            {PRODUCE: 1_600_000.0, CONSUME: 2_600_000.0},
            {PRODUCE: 1_400_000.0, PERCENT: 500.0},
            {PRODUCE: 1_500_000.0, CONSUME: 2_500_000.0},
        )[n % 3]
    wanted[user(team + LAST)] = {PRODUCE: 1_500_000.0, CONSUME: 2_500_000.0}
    return before, wanted


class ChangeSet:
    """A folder whose manifests want something of a cluster, which gets what was there before.

    ``alone``: the cluster has nothing else, and gets nothing else; without it, other entities are no concern of this.
    ``whole_requests``: of the size that a user's have.
    """

    def __init__(
        self,
        folder: Path,
        servers: str,
        *,
        wanted: State,
        before: State | None = None,
        alone: bool = True,
        whole_requests: bool = False,
    ) -> None:
        self._env = {} if whole_requests else {small_requests.VARIABLE: str(SMALL_REQUEST)}
        self.folder = folder
        self.servers = servers
        self.brokers: tuple[int, ...] = ()
        """Whose word counts, where there is more than one."""
        self.before = before or {}
        self.wanted = wanted
        (folder / "cluster.yaml").write_text(manifests.cluster(prune="never"))
        self.declare(wanted)
        self._alone = alone
        if alone:
            raw_quotas.remove_all(servers)
        raw_quotas.alter(servers, self.before)
        live = self.live()
        assert {entity: quotas for entity, quotas in live.items() if alone or entity in self.before} == self.before

    def declare(self, wanted: State) -> None:
        """Replace what the manifests want."""
        self.wanted = wanted
        entries = ((dict(entity), quotas) for entity, quotas in wanted.items())
        (self.folder / "quotas.yaml").write_text(manifests.quotas(*entries))

    def live(self) -> dict[RawEntity, dict[str, float]]:
        """What the cluster holds, by raw messages, with all that was answered before; each of ``brokers`` must agree."""
        live = raw_quotas.settled(self.servers, brokers=self.brokers)
        ours = self.before.keys() | self.wanted.keys()
        return live if self._alone else {entity: quotas for entity, quotas in live.items() if entity in ours}

    def run(self, server: str | int, *extra: str, timeout: float = 600) -> Done:
        """Apply through a bootstrap server, or a port of a proxy."""
        return run(*APPLY, "--bootstrap-server", _server(server), *extra, cwd=self.folder, env=self._env, timeout=timeout)

    def running(self, server: str | int, *extra: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
        """The same as a process that goes on meanwhile; killed at the end of the block if it still runs."""
        line = (*APPLY, "--bootstrap-server", _server(server), *extra)
        root = {"PYTHONPATH": str(Path(__file__).parents[2])}
        command = (sys.executable, "-P", "-m", small_requests.__name__)
        return running(*line, cwd=self.folder, command=command, env={**self._env, **root})

    def require_true(self, report: Any, *, before: State | None = None, theirs: State | None = None) -> None:
        """Fail unless each change is exactly as its status says: done whole, not begun, or for ``unknown`` one of the two.

        ``theirs``: what somebody else has written since, and must still be there.
        """
        valid(report, "apply-report")
        live, others = self.live(), theirs or {}
        had_all = self.before if before is None else before
        counts = dict.fromkeys(report["summary"], 0)
        for change in report["changes"]:
            entity = frozenset(change["entity"].items())
            had, has, wanted = had_all.get(entity, {}), live.get(entity, {}), self.wanted.get(entity, {})
            told = (short(entity), change["status"], has)
            assert {key: two["before"] for key, two in change["keys"].items()} == {key: had.get(key) for key in change["keys"]}, (
                told
            )
            good = {"applied": [wanted], "unknown": [wanted, had]}.get(change["status"], [had])
            assert has in ([others[entity]] if entity in others else good), told
            counts[change["status"]] += 1
        assert counts == report["summary"]
        named = {frozenset(change["entity"].items()) for change in report["changes"]}
        unplanned = {entity: quotas for entity, quotas in {**had_all, **others}.items() if entity not in named}
        assert {entity: quotas for entity, quotas in live.items() if entity not in named} == unplanned
        assert report["verified"] is (report["result"] in ("done", "nothing_to_do"))

    def require_whole_entities(self) -> dict[RawEntity, dict[str, float]]:
        """Fail unless each entity is as before or as wanted, none lost and none half-written. Returns what the cluster holds."""
        live = self.live()
        assert live.keys() <= self.wanted.keys() | self.before.keys()
        for entity in self.wanted.keys() | self.before.keys():
            assert live.get(entity, {}) in (self.before.get(entity, {}), self.wanted.get(entity, {})), short(entity)
        return live

    def require_untouched(self) -> None:
        """Fail unless nothing at all was written."""
        assert self.live() == self.before

    def finish(self, *extra: str, server: str | int | None = None) -> None:
        """The next run does what is left, if anything is, and the one after it has nothing to do."""
        where = self.servers if server is None else server
        left = self.live()
        if left != self.wanted:
            second = self.run(where, *extra)
            assert second.code == 0, second.err
            report = second.json()
            assert report["result"] == "done", report["message"]
            self.require_true(report, before=left)
            assert self.live() == self.wanted
        last = self.run(where, *extra)
        assert last.code == 0, last.err
        assert (last.json()["result"], last.json()["changes"]) == ("nothing_to_do", [])


def ended(process: subprocess.Popen[str]) -> Done:
    """Wait for a run's end; never with a traceback."""
    out, err = process.communicate(timeout=300)
    assert "Traceback" not in err, err
    return Done(code=process.returncode, out=out, err=err)


def short(entity: RawEntity) -> str:
    """An entity for a failure's message."""
    return ", ".join(f"{kind}={(name or '<default>')[:20]}" for kind, name in sorted(entity))


def statuses(report: Any) -> dict[str, set[str]]:
    """The short names of a report's users by what became of them."""
    found: dict[str, set[str]] = {}
    for change in report["changes"]:
        found.setdefault(change["status"], set()).add(change["entity"]["user"].rstrip("x"))
    return found


def _server(server: str | int) -> str:
    return f"127.0.0.1:{server}" if isinstance(server, int) else server
