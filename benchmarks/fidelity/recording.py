"""Two runs of one script on one cluster, without quotas and under them, and the part of the request logs that each wrote."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka.admin import NewTopic

from benchmarks.apply.scenes import bring
from benchmarks.fidelity import frames
from benchmarks.fidelity.arrivals import SMALLEST, Arrival
from benchmarks.fidelity.rehearsal import connections_needed, planned_throttles
from benchmarks.fidelity.scenarios import Quotas, Scenario, uses_groups
from benchmarks.fidelity.sender import Connections, OpenLoop, Sent
from reconciler.features.sandbox.clients import admin_client
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from reconciler.formats.canonical import entity_to_json
from reconciler.resolution.reserved_users import GROUP_CALLBACK
from tests.support.broker_classes import with_groups

PRODUCED = "fidelity-in"
STOCK = "fidelity-out"
_PASSWORD = "benchmark"  # a sandbox on loopback, gone when the run is
QUIET_S = 14.0
"""After this long nothing is left in any sample."""
_LOGGED_WITHIN_S = 30.0
_WARM_UP_S = 6.0
_STOCK_BATCH = 100_000
_STOCK_BATCHES = 30
_REQUEST_TIME_S = 1.0
"""The most that a limit of request time holds a connection back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One run: what was sent, and a log file for each broker, by id."""

    sent: Sent
    logs: dict[int, Path]


@contextlib.contextmanager
def cluster(kafka_version: str, users: Sequence[str], *, brokers: int, groups: bool = False) -> Iterator[Sandbox]:
    """A Kafka on loopback that logs every request; it ends with the block. ``groups``: its brokers have the plugin."""
    logins = tuple(Login(name=user, password=_PASSWORD) for user in users)
    spec = SandboxSpec(kafka_version=kafka_version, nodes=brokers, users=logins, request_log=True, heap_mb=768)
    with running(with_groups(spec) if groups else spec) as sandbox:
        make_topics(sandbox)
        yield sandbox


def warm_up(sandbox: Sandbox, arrivals: Sequence[Arrival]) -> None:
    """The first seconds of the script, unrecorded: a broker that was started just now is slower than it will be."""
    some = [one for one in arrivals if one.at_s < _WARM_UP_S]
    with _connections(sandbox) as connections:
        connections.open(connections_needed(some, [0] * len(some)))
        OpenLoop(connections).run(some, [encode(one) for one in some])


def record(
    sandbox: Sandbox, scenario: Scenario, arrivals: Sequence[Arrival], quotas: Quotas, folder: Path, *, quiet_s: float = QUIET_S
) -> Recorded:
    """Run the script under ``quotas``, which are taken away afterwards; the logs go into ``folder``."""
    bring(sandbox.bootstrap_servers, quotas)
    for node in sandbox.nodes:
        _bring_each(sandbox, node.port, quotas)
    throttles = planned_throttles(arrivals, quotas)
    timed = any("request_percentage" in values for values in quotas.values())
    with _connections(sandbox) as connections:
        connections.open(connections_needed(arrivals, throttles, longest_s=_REQUEST_TIME_S if timed else 0.0))
        encoded = [encode(one) for one in arrivals]
        # What logging in took of request time is forgotten, too.
        time.sleep(quiet_s)
        starts = log_sizes(sandbox)
        sent = OpenLoop(connections).run(arrivals, encoded)
        if sent.unanswered:
            raise SystemExit(f"{scenario.name}: {sent.unanswered} requests were never answered")
        logs = _complete_logs(sandbox, starts, folder, wanted=len(arrivals))
    bring(sandbox.bootstrap_servers, {})
    return Recorded(sent=sent, logs=logs)


def encode(arrival: Arrival) -> bytes:
    """The request's bytes. Partition N of every topic is led by broker N."""
    client = arrival.client
    if client.kind == "fetch":
        return frames.fetch(STOCK, arrival.broker, arrival.size, number=arrival.number, client_id=client.client_id)
    records = frames.batch(arrival.size)
    return frames.produce(PRODUCED, arrival.broker, records, number=arrival.number, client_id=client.client_id, acks=client.acks)


def log_sizes(sandbox: Sandbox) -> dict[int, int]:
    """Bytes of each broker's request log so far."""
    return {node.id: _log(sandbox, node.id).stat().st_size for node in sandbox.nodes}


def cut_logs(sandbox: Sandbox, starts: Mapping[int, int], folder: Path) -> dict[int, Path]:
    """Copies of what the logs have from there on."""
    logs = {}
    for broker, start in starts.items():
        logs[broker] = folder / f"node-{broker}" / "kafka-request.log"
        logs[broker].parent.mkdir(parents=True, exist_ok=True)
        with _log(sandbox, broker).open("rb") as source:
            source.seek(start)
            logs[broker].write_bytes(source.read())
    return logs


def write_manifests(folder: Path, quotas: Quotas) -> Path:
    """The quotas as a manifest, as ``backtest`` reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [
        {"match": {kind: name if name is not None else {"default": True} for kind, name in entity_to_json(entity).items()},
         "quotas": {key: f"{value:.12g}" for key, value in values.items()}}
        for entity, values in quotas.items()
    ]  # fmt: skip
    document = {
        "apiVersion": "kafka-quotas/v1", "kind": "ClientQuotas", "metadata": {"name": "fidelity", "owner": "benchmark"},
        "spec": {"quotas": entries},
    }  # fmt: skip
    (folder / "quotas.yaml").write_text(json.dumps(document, indent=1), encoding="utf-8")
    if uses_groups(quotas):
        of_cluster = {
            "apiVersion": "kafka-quotas/v1", "kind": "Cluster", "metadata": {"name": "fidelity"},
            "spec": {"prune": "never", "quotaCallback": {"class": GROUP_CALLBACK}},
        }  # fmt: skip
        (folder / "cluster.yaml").write_text(json.dumps(of_cluster, indent=1), encoding="utf-8")
    return folder


def _connections(sandbox: Sandbox) -> Connections:
    servers = (sandbox.sasl_bootstrap_servers or "").split(",")
    return Connections(servers, {login.name: login for login in sandbox.users})


def make_topics(sandbox: Sandbox) -> None:
    """One partition led by each broker, and replicated to all; the stock has enough in it for the largest fetch."""
    ids = [node.id for node in sandbox.nodes]
    assignments = {place: ids[place:] + ids[:place] for place in range(len(ids))}
    with admin_client(sandbox.bootstrap_servers) as client:
        client.create_topics([NewTopic(name=name, replica_assignments=assignments) for name in (PRODUCED, STOCK)])
    user = sandbox.users[0]
    # A broker gives the first batch whole, however little is asked for, and cuts what follows.
    sizes = (SMALLEST, *[_STOCK_BATCH] * _STOCK_BATCHES)
    with _connections(sandbox) as connections:
        for broker in range(len(ids)):
            for number, size in enumerate(sizes):
                _produced(connections, broker, user.name, frames.batch(size), number)


def _produced(connections: Connections, broker: int, user: str, batch: bytes, number: int) -> None:
    """One batch is appended and replicated; a topic made just now has its leader a little later."""
    deadline = time.monotonic() + _LOGGED_WITHIN_S
    frame = frames.produce(STOCK, broker, batch, number=number, client_id="stock", acks=-1)
    while (error := connections.ask((broker, user), frame)) != 0:
        if time.monotonic() > deadline:
            raise SystemExit(f"cannot fill {STOCK}: error {error}")
        time.sleep(0.1)


def _bring_each(sandbox: Sandbox, port: int, quotas: Quotas) -> None:
    """Brokers learn of a change one after the other."""
    if len(sandbox.nodes) > 1:
        bring(f"127.0.0.1:{port}", quotas)


def _log(sandbox: Sandbox, broker: int) -> Path:
    path = next(node.request_log_file for node in sandbox.nodes if node.id == broker)
    if path is None:
        raise SystemExit("this cluster logs no requests")
    return path


def _complete_logs(sandbox: Sandbox, starts: Mapping[int, int], folder: Path, *, wanted: int) -> dict[int, Path]:
    """A line is written some time after its answer."""
    deadline = time.monotonic() + _LOGGED_WITHIN_S
    logs = cut_logs(sandbox, starts, folder)
    while sum(map(_lines, logs.values())) < wanted:
        if time.monotonic() > deadline:
            raise SystemExit("the brokers did not log every request")
        time.sleep(0.2)
        logs = cut_logs(sandbox, starts, folder)
    return logs


def _lines(path: Path) -> int:
    """Of the script's own topics; replicas ask for them, too, but name themselves."""
    with path.open("rb") as lines:
        return sum(is_ours(line) for line in lines)


def is_ours(line: bytes) -> bool:
    """Whether a line is of a scripted client: their ids have a listener with a login."""
    return b'"listener":"SASL"' in line and (b'"requestApiKey":0,' in line or b'"requestApiKey":1,' in line)
