"""Changes to the nodes of users who also have credentials, and the proof that whatever was said about them is so in ZooKeeper."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from tests.support import manifests
from tests.support.command import Done, run, running
from tests.support.zookeeper_tree import nodes_below

GUARDS = ("too-many-changes", "too-many-removals")
APPLY = (
    "apply",
    ".",
    "--auto-approve",
    "--quiet",
    "--format",
    "json",
    *(word for guard in GUARDS for word in ("--accept", guard)),
)
PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"
SCRAM = "SCRAM-SHA-256"

Quotas = Mapping[str, float]


class ZooKeeperWork:
    """``count`` users of four kinds: credentials and a quota, a quota only, credentials only, nothing at all yet."""

    def __init__(self, folder: Path, witness: KazooClient, *, count: int = 60) -> None:
        self.folder = folder
        self._witness = witness
        names = [f"u{n:03}" for n in range(count)]
        self.before: dict[str, Quotas] = {
            name: {PRODUCE: 1000.0, CONSUME: 2000.0} if n % 4 < 2 else {} for n, name in enumerate(names)
        }
        self.wanted: dict[str, Quotas] = {
            name: {PRODUCE: 1500.0} if n % 4 == 1 else {PRODUCE: 1500.0, CONSUME: 2500.0} for n, name in enumerate(names)
        }
        self.secrets = {name: f"salt={name},iterations=4096" for n, name in enumerate(names) if n % 4 in (0, 2)}
        for name in names:
            config = {key: str(int(value)) for key, value in self.before[name].items()}
            if name in self.secrets:
                config[SCRAM] = self.secrets[name]
            if config:
                witness.create(f"/config/users/{name}", json.dumps({"version": 1, "config": config}).encode())
        entries = (({"user": name}, quotas) for name, quotas in self.wanted.items())
        (folder / "cluster.yaml").write_text(manifests.cluster(prune="never"))
        (folder / "quotas.yaml").write_text(manifests.quotas(*entries))

    def run(self, place: str, *extra: str) -> Done:
        """Apply through a ZooKeeper, or a proxy."""
        return run(*APPLY, "--zookeeper", place, *extra, cwd=self.folder)

    def running(self, place: str, *extra: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
        """The same as a process that goes on meanwhile; killed at the end of the block if it still runs."""
        return running(*APPLY, "--zookeeper", place, *extra, cwd=self.folder)

    def live(self) -> dict[str, Quotas]:
        """The quotas there are; fails when a node is torn, or has lost or changed a credential."""
        nodes = nodes_below(self._witness, "/config/users")
        found: dict[str, Quotas] = {}
        for name in self.before:
            data = nodes.get(f"/config/users/{name}")
            config = json.loads(data)["config"] if data else {}
            assert config.pop(SCRAM, None) == self.secrets.get(name), name
            found[name] = {key: float(value) for key, value in config.items()}
            assert found[name] in (self.before[name], self.wanted[name]), f"{name} is torn: {found[name]}"
        return found

    def done(self) -> set[str]:
        """Whose quotas are as wanted."""
        return {name for name, quotas in self.live().items() if quotas == self.wanted[name]}

    def require_true(self, report: Any) -> None:
        """Fail unless each change is exactly as its status says."""
        live = self.live()
        for change in report["changes"]:
            name = change["entity"]["user"]
            had, wanted = self.before[name], self.wanted[name]
            good = {"applied": [wanted], "unknown": [wanted, had]}.get(change["status"], [had])
            assert live[name] in good, (name, change["status"], live[name])
        assert report["verified"] is (report["result"] in ("done", "nothing_to_do"))

    def finish(self, place: str) -> None:
        """A second run does the rest, a third one has nothing to do."""
        second = self.run(place)
        assert (second.code, second.json()["result"]) == (0, "done"), second
        assert self.live() == self.wanted
        third = self.run(place)
        assert (third.code, third.json()["result"]) == (0, "nothing_to_do"), third
