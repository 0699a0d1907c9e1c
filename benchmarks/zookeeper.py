"""Quotas in ZooKeeper: this tool, bare kazoo, and the broker's own AlterClientQuotas, on one Kafka 3.9.2 in ZooKeeper mode.

``python -m benchmarks.zookeeper [--entities N ...] [--times N] [--without-broker]``

Every contender starts with an empty tree and servers that have nothing left to do; ZooKeeper waits for its disk at each write,
as it does by default. "Whole run" is what apply does once it has a plan: lock, checks, validation, comparison, writing, reading
back. Bare kazoo keeps 512 requests in flight over its own sockets; it checks nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import machine, row

if TYPE_CHECKING:
    from kazoo.client import KazooClient

    from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
    from reconciler.features.sandbox.spec import Sandbox
    from reconciler.model.plan import Change
    from reconciler.ports import QuotaCluster

KEYS = ("producer_byte_rate", "consumer_byte_rate")
_IN_FLIGHT = 512
_A_REQUEST = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--without-broker", action="store_true", help="leave out AlterClientQuotas, which takes minutes")
    args = parser.parse_args()
    from kazoo.client import KazooClient

    from reconciler.backends.broker.cluster import BrokerCluster
    from reconciler.backends.broker.settings import ConnectionSettings, parse_servers
    from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
    from reconciler.backends.zookeeper.settings import ZooKeeperSettings, parse_connection
    from reconciler.features.sandbox.cluster import running
    from reconciler.features.sandbox.spec import SandboxSpec, ZooKeeperSpec

    print(machine())
    for entities in args.entities:
        zookeeper = ZooKeeperSpec(java_options=("-Xmx1024m", "-Dzookeeper.forceSync=yes"))
        with running(SandboxSpec(heap_mb=1024, zookeeper=zookeeper)) as sandbox:
            assert sandbox.zookeeper is not None
            servers, chroot = parse_connection(sandbox.zookeeper)
            bare = KazooClient(hosts=sandbox.zookeeper)
            bare.start()
            ours = ZooKeeperCluster.open(ZooKeeperSettings(servers=servers, chroot=chroot))
            theirs = BrokerCluster.open(ConnectionSettings(servers=parse_servers((sandbox.bootstrap_servers,))))
            compare(ours, bare, None if args.without_broker else theirs, entities, times=args.times, sandbox=sandbox)
            theirs.close()
            ours.close()
            bare.stop()
            bare.close()


def compare(
    ours: ZooKeeperCluster, bare: KazooClient, broker: QuotaCluster | None, entities: int, *, times: int, sandbox: Sandbox
) -> None:
    """All rows for one number of entities."""
    none: Mapping[str, float | None] = dict.fromkeys(KEYS)
    before = dict.fromkeys(KEYS, 1_000_000.0)
    few = max(1, entities // 100)
    create, change = changes(entities, none), changes(few, before, value=2_000_000.0)
    back = changes(few, dict.fromkeys(KEYS, 2_000_000.0))

    def best(work: Callable[[], object], *, empty: bool = True, again: int = times) -> Took:
        figures = []
        for _ in range(again):
            settle(sandbox)
            delete_all(bare, users=empty)
            settle(sandbox)
            figures.append(timed(work))
        return Took(wall=min(took.wall for took in figures), cpu=min(took.cpu for took in figures))

    print(f"{entities} entities x 2 keys, load {os.getloadavg()[0]:.1f}")
    base = best(lambda: bare_writes(bare, entities))
    show("bare kazoo: transactions in flight", base)
    show("this tool: writing them", alone := best(lambda: alter(ours, create)), base, "goal 2 x")
    ours.current_state()  # planning has done that
    show("this tool: the whole run", best(lambda: whole_run(ours, create)), base)
    some = best(lambda: whole_run(ours, change), empty=False, again=1)
    whole_run(ours, back)
    show(f"this tool: the whole run, {few} changed", some)
    reads = best(lambda: bare_reads(bare), empty=False)
    show(f"bare kazoo: get_async of {entities} nodes", reads)
    show("this tool: reading all (nothing to do)", best(ours.current_state, empty=False), reads, "goal 2 x")
    if broker is not None:
        took = best(lambda: alter(broker, create), again=1)
        show("AlterClientQuotas of the broker", took, alone, "of this tool's writing, goal 10 x")
        show(f"AlterClientQuotas of the broker, {few} changed", best(lambda: alter(broker, change), empty=False, again=1))
        show("DescribeClientQuotas of the broker", best(broker.current_state, empty=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Wall clock, and CPU time of this process (the servers' is not in it), in seconds."""

    wall: float
    cpu: float


def show(what: str, took: Took, base: Took | None = None, note: str = "") -> None:
    row(what, took.wall, base.wall if base else None, f"CPU {took.cpu:.2f} s  {note}")


def timed(work: Callable[[], object]) -> Took:
    start, used = time.perf_counter(), time.process_time()
    work()
    return Took(wall=time.perf_counter() - start, cpu=time.process_time() - used)


def changes(count: int, before: Mapping[str, float | None], value: float = 1_000_000.0) -> Sequence[Change]:
    from reconciler.model.entity import Entity
    from reconciler.model.plan import Action, Change, KeyChange, Reason

    return [
        Change(
            entity=Entity.of({"user": f"team-{number:06}"}),
            action=Action.CREATE if before[KEYS[0]] is None else Action.UPDATE,
            keys=tuple(KeyChange(key=key, before=before[key], after=value, reason=Reason.VALUE_DIFFERS) for key in sorted(KEYS)),
        )
        for number in range(count)
    ]


def alter(cluster: QuotaCluster, wanted: Sequence[Change]) -> None:
    """Write, and nothing else."""
    alterations = [change.alteration() for change in wanted]
    for start in range(0, len(alterations), _A_REQUEST):
        results = cluster.alter(alterations[start : start + _A_REQUEST], validate_only=False)
        assert not [result.error for result in results if result.error_code]


def whole_run(cluster: ZooKeeperCluster, wanted: Sequence[Change]) -> None:
    """As apply does."""
    from reconciler.apply.executor import ApplySettings, Executor
    from reconciler.model.plan import ApplyResult
    from reconciler.ports import NO_PROGRESS, SystemClock
    from tests.builders import plan

    with cluster.exclusive("a benchmark"):
        executor = Executor(cluster, clock=SystemClock(), progress=NO_PROGRESS, settings=ApplySettings())
        report = executor.run(plan(*wanted))
    assert report.result is ApplyResult.DONE, report.message


def in_flight(requests: Iterable[Any]) -> list[Any]:
    """The answers to requests, of which so many are on their way at most."""
    waiting: deque[Any] = deque()
    answers = []
    for request in requests:
        if len(waiting) >= _IN_FLIGHT:
            answers.append(waiting.popleft().get())
        waiting.append(request)
    answers += [request.get() for request in waiting]
    return answers


def bare_writes(client: KazooClient, count: int) -> None:
    data = json.dumps({"version": 1, "config": dict.fromkeys(KEYS, "1000000")}, separators=(",", ":")).encode()

    def one(number: int) -> Any:
        transaction = client.transaction()
        transaction.create(f"/config/users/team-{number:06}", data)
        told = json.dumps({"version": 2, "entity_path": f"users/team-{number:06}"}, separators=(",", ":"))
        transaction.create("/config/changes/config_change_", told.encode(), sequence=True)
        return transaction.commit_async()

    answers = in_flight(one(number) for number in range(count))
    assert not [part for answer in answers for part in answer if isinstance(part, Exception)]


def bare_reads(client: KazooClient) -> None:
    in_flight(client.get_async(f"/config/users/{name}") for name in client.get_children("/config/users"))


def delete_all(client: KazooClient, *, users: bool) -> None:
    """Leave no notification, which brokers would list again and again, and no user; brokers are not told of that."""
    for folder in ("/config/changes", "/config/users") if users else ("/config/changes",):
        in_flight(client.delete_async(f"{folder}/{name}") for name in client.get_children(folder))


def settle(sandbox: Sandbox) -> None:
    """Wait until the servers have nothing left to do: brokers read what they were notified of in their own time."""
    pids = [server.process.pid for server in sandbox.servers]
    while True:
        before = sum(map(cpu_ticks, pids))
        time.sleep(0.5)
        if sum(map(cpu_ticks, pids)) - before <= 5:
            return


def cpu_ticks(pid: int) -> int:
    """What a process has used, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    main()
