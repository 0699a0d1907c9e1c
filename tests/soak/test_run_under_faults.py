"""``kafka-quotas run --apply`` beside three nodes, for twenty minutes of faults: it always comes back to the manifests.

``SOAK_SECONDS`` sets another length, ``SOAK_SEED`` the faults and their order.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import SandboxSpec
from tests.support import raw_quotas
from tests.support.manifests import cluster as cluster_document
from tests.support.polling import wait_until
from tests.support.service_process import Running, running
from tests.support.service_world import rates
from tests.support.three_nodes import ThreeNodes, three_nodes

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

SECONDS = float(os.environ.get("SOAK_SECONDS", "1200"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
USERS = 40
MOST_GROWTH_KIB = 12 * 1024
"""Between a quarter of the time and its end; what one pass needs and frees again lies within."""
MOST_NEW_FILES = 8


class Soak:
    """The cluster, the manifests, and what is done to both."""

    def __init__(self, nodes: ThreeNodes, folder: Path, chance: random.Random) -> None:
        self.nodes = nodes
        self.folder = folder
        self.service: Running
        self._chance = chance
        self.wanted = {f"user-{number}": 1_000_000 + number for number in range(USERS)}
        self.write()

    def write(self) -> None:
        """The manifests as they are wanted."""
        connection = {"bootstrapServers": self.nodes.servers(1, 2, 3).split(",")}
        (self.folder / "cluster.yaml").write_text(cluster_document(prune="always", connection=connection))
        (self.folder / "quotas.yaml").write_text(rates(**{user: str(rate) for user, rate in self.wanted.items()}))

    def in_sync(self) -> bool:
        live = {next(iter(entity))[1]: values for entity, values in raw_quotas.describe(self.nodes.servers()).items()}
        return live == {user: {"producer_byte_rate": float(rate)} for user, rate in self.wanted.items()}

    def faults(self) -> dict[str, Callable[[], None]]:
        """Each returns when its trouble is over; what it leaves behind is the service's to mend."""
        return {
            "a merge changes values": self._merge,
            "somebody changes the cluster by hand": self._change_by_hand,
            "the manifests are broken for a while": self._break_manifests,
            "the folder vanishes for a while": self._hide_folder,
            "a node is killed": lambda: self._node_down(self.nodes.kill),
            "a node stands still": lambda: self._node_down(self.nodes.stop),
            "all nodes are gone": self._all_down,
            "many signals at once": self._signals,
        }

    def _merge(self) -> None:
        for user in self._chance.sample(sorted(self.wanted), 5):
            self.wanted[user] += self._chance.randint(1, 1000)
        self.write()

    def _change_by_hand(self) -> None:
        user = self._chance.choice(sorted(self.wanted))
        stranger = frozenset({("user", f"stranger-{self._chance.randint(0, 9)}")})
        changes: dict[raw_quotas.RawEntity, dict[str, float | None]] = {
            frozenset({("user", user)}): {"producer_byte_rate": 1_500_000.0},
            stranger: {"producer_byte_rate": 1e6},
        }
        raw_quotas.alter(self.nodes.servers(), changes)

    def _break_manifests(self) -> None:
        before = self.service.results().count("invalid")
        (self.folder / "quotas.yaml").write_text("kind: [")
        self._until(lambda: self.service.results().count("invalid") > before)
        self.write()

    def _hide_folder(self) -> None:
        before = self.service.results().count("vanished")
        hidden = self.folder.with_name("hidden")
        self.folder.rename(hidden)
        self._until(lambda: self.service.results().count("vanished") > before)
        hidden.rename(self.folder)

    def _node_down(self, fell: Callable[[int], None]) -> None:
        fell(self._chance.choice((1, 2, 3)))
        self._passes(2)
        self.nodes.mend()

    def _all_down(self) -> None:
        before = self.service.results().count("cluster")
        for node in (1, 2, 3):
            self.nodes.kill(node)
        self._until(lambda: self.service.results().count("cluster") >= before + 2)
        assert self.service.page("/healthz")[0] == 200
        self.nodes.mend()

    def _signals(self) -> None:
        for _ in range(20):
            self.service.process.send_signal(signal.SIGHUP)
        self._passes(1)

    def _passes(self, more: int) -> None:
        wanted = len(self.service.results()) + more
        self._until(lambda: len(self.service.results()) >= wanted)

    def _until(self, look: Callable[[], object]) -> None:
        wait_until(lambda: self.service.process.poll() is not None or look())
        assert self.service.process.poll() is None, "the service ended"


@pytest.fixture
def soak(tmp_path: Path) -> Iterator[Soak]:
    folder = tmp_path / "quotas"
    folder.mkdir()
    with three_nodes(SandboxSpec(nodes=3, heap_mb=256)) as nodes:
        yield Soak(nodes, folder, random.Random(SEED))


def test_whatever_happens_it_comes_back_to_the_manifests_and_needs_no_more_than_before(soak: Soak, tmp_path: Path) -> None:
    options = ("--apply", "--interval", "3", "--deadline", "60", "--audit", str(tmp_path / "audit.jsonl"))
    begun, order = time.monotonic(), random.Random(SEED)
    early: tuple[int, int] | None = None
    seen: dict[str, int] = {}
    with running(soak.folder, tmp_path / "log", *options) as service:
        soak.service = service
        wait_until(soak.in_sync)
        while time.monotonic() - begun < SECONDS:
            faults = soak.faults()
            # Each kind once before any comes again, so that also a short soak has had them all.
            rarest = min(seen.get(kind, 0) for kind in faults)
            name = order.choice(sorted(kind for kind in faults if seen.get(kind, 0) == rarest))
            seen[name] = rarest + 1
            faults[name]()
            wait_until(lambda: service.process.poll() is not None or soak.in_sync())
            assert service.process.poll() is None, f"ended after: {name}"
            if early is None and time.monotonic() - begun > SECONDS / 4:
                early = held(service.process.pid)
        late = held(service.process.pid)
        wait_until(lambda: service.page("/readyz")[0] == 200)
        failed, passes = service.results().count("failed"), len(service.results())
        assert service.end(signal.SIGTERM) == 0

    print(f"\n{passes} passes, {failed} failed; {sum(seen.values())} faults: {seen}; memory and files {early} -> {late}")
    assert early is not None
    assert seen.keys() == soak.faults().keys() or SECONDS < 600
    assert late[0] - early[0] < MOST_GROWTH_KIB
    assert late[1] - early[1] < MOST_NEW_FILES


def held(pid: int) -> tuple[int, int]:
    """Resident memory in KiB, and open files."""
    status = Path(f"/proc/{pid}/status").read_text()
    (resident,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(resident), len(list(Path(f"/proc/{pid}/fd").iterdir()))
