"""``why`` and ``headroom`` of one broker that throttles each of the five keys on purpose, from each source of it.

Three phases: no limits, limits that every client exceeds, and limits far above. Each question has the answers that are true. What
the sources show in the second phase is the table of the documentation.
"""

from __future__ import annotations

import contextlib
import datetime
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.metadata import MetadataRequest

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from tests.support import config_command, raw_quotas
from tests.support.broker_classes import with_recorder
from tests.support.command import invoke
from tests.support.exporter_rules import RULES
from tests.support.git_repository import GitRepository
from tests.support.jmx_exporter import exported_cluster
from tests.support.manifests import quotas
from tests.support.prometheus_server import ScrapeJob, prometheus
from tests.support.wire_client import ClosedError, WireClient, record_batch

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

PHASES_S = (20, 30, 40)
LATE_S = 0.3
"""How much earlier than the answer to a change the broker may have made it."""
ADDRESS = "127.0.0.2"
LIMITED: dict[str, tuple[str, float, float]] = {
    "prod": ("producer_byte_rate", 20_000.0, 1e9),
    "cons": ("consumer_byte_rate", 20_000.0, 1e9),
    "reqs": ("request_percentage", 0.05, 100_000.0),
    "old": ("controller_mutation_rate", 2.0, 10_000.0),
    "new": ("controller_mutation_rate", 2.0, 10_000.0),
}
ADDRESS_LIMIT: tuple[str, float, float] = ("connection_creation_rate", 2.0, 10_000.0)
LOGINS = {name: Login(name=name, password=f"{name}-secret") for name in LIMITED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Where each source is, and when the phases began and the last one ended; seconds since 1970."""

    folder: Path
    sources: Mapping[str, str]
    starts: tuple[float, float, float, float]
    calm: float
    """From when on no throttle of the second phase lasts."""
    moments: tuple[Mapping[tuple[str, str], dict[str, Any]], ...]
    """At the end of the second phase and of the third one: by command and source, or by ``why`` and client, what was shown."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    folder = tmp_path_factory.mktemp("why")
    recorded = folder / "recorded"
    spec = with_recorder(SandboxSpec(users=tuple(LOGINS.values()), request_log=True, heap_mb=384), recorded)
    with exported_cluster(folder, rules=RULES["quota-labels"] + _MORE_RULES, spec=spec) as running:
        broker = running.sandbox
        loggers = ",".join(f"org.apache.kafka.server.quota.{name}=DEBUG" for name in _LOGGERS)
        config_command.run(broker, "--alter", "--entity-type", "broker-loggers", "--entity-name", "1", "--add-config", loggers)
        create_topic(broker.bootstrap_servers, "orders")
        with WireClient(broker.bootstrap_servers, None, "seed") as client:
            client.seed("orders", record_batch(30_000))
        job = ScrapeJob(name="kafka", ports={running.ports[1]: {"broker_id": "1"}}, interval_s=1)
        made = GitRepository(folder / "repository")
        _declare(made, None, at=time.time() - 3600)
        with prometheus(folder, [job]) as server, _traffic(broker) as longest:
            log = broker.nodes[0].request_log_file
            sources = {
                "log": f"1={log}",
                "recorder": str(recorded),
                "prometheus": f"prometheus+http://127.0.0.1:{server.port}",
                "page": f"1=metrics+{running.url()}",
            }
            starts = [time.time()]
            _wait(PHASES_S[0])
            moments = []
            for place in (1, 2):
                _declare(made, place, at=time.time())
                raw_quotas.alter(broker.bootstrap_servers, _settings(place))
                starts.append(time.time())
                _wait(PHASES_S[place])
                if place == 2:
                    # A broker shows a throttle for up to a minute.
                    _wait(max(0.0, max(longest) + 62 - time.time()))
                since = starts[0] - 3600 if place == 1 else starts[-1]
                moments.append(_present(folder, sources, broker.bootstrap_servers, since))
            starts.append(time.time())
            yield Recording(
                folder=folder,
                sources=sources,
                starts=(starts[0], starts[1], starts[2], starts[3]),
                calm=max(longest),
                moments=tuple(moments),
            )


_LOGGERS = ("ClientQuotaManager", "ControllerMutationQuotaManager")
_MORE_RULES = """
- pattern: kafka.server<type=socket-server-metrics, ip=(.+)><>connection-accept-rate
  name: kafka_server_socket_server_metrics_connection_accept_rate
  labels: {ip: "$1"}
"""


def _settings(place: int) -> dict[raw_quotas.RawEntity, dict[str, float | None]]:
    """The limits of a phase, 1 or 2."""
    entities = {frozenset({("user", name)}): values for name, values in LIMITED.items()}
    entities[frozenset({("ip", ADDRESS)})] = ADDRESS_LIMIT
    return {entity: {key: (limited, raised)[place - 1]} for entity, (key, limited, raised) in entities.items()}


def _declare(repository: GitRepository, place: int | None, *, at: float) -> None:
    entries = [({"user": "unrelated"}, {"producer_byte_rate": "1MB"})]
    if place is not None:
        entries += [({"user": name}, {values[0]: str(values[place])}) for name, values in LIMITED.items()]
        entries += [({"ip": ADDRESS}, {ADDRESS_LIMIT[0]: str(ADDRESS_LIMIT[place])})]
    repository.write("quotas/team.yaml", quotas(*entries))
    repository.commit(f"Phase {place}", at=datetime.datetime.fromtimestamp(at, tz=datetime.UTC))


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


@contextlib.contextmanager
def _traffic(broker: Sandbox) -> Iterator[list[float]]:
    """Every client sends all the time. The list gets when each throttle ends."""
    assert broker.sasl_bootstrap_servers is not None
    server, ended, longest = broker.sasl_bootstrap_servers, threading.Event(), [0.0]
    batch = record_batch(20_000)

    def refused(client: WireClient) -> int:
        topic = CreateTopicsRequest.CreatableTopic(
            name="never-made", num_partitions=2, replication_factor=1, assignments=[], configs=[]
        )
        answer = client.ask(CreateTopicsRequest[7](topics=[topic], timeout_ms=10_000, validate_only=True))
        return int(answer.throttle_time_ms)

    def asked(client: WireClient) -> int:
        return max(int(client.ask(MetadataRequest[8](topics=None)).throttle_time_ms) for _ in range(3))

    actions: dict[str, Callable[[WireClient], int]] = {
        "prod": lambda client: client.produce("orders", batch)[1],
        "cons": lambda client: client.fetch("orders"),
        "reqs": asked,
        "old": lambda client: client.try_to_create(2),
        "new": refused,
    }

    def run(name: str) -> None:
        while not ended.wait(0.5):
            with contextlib.suppress(ClosedError, ConnectionError), WireClient(server, LOGINS[name], "app") as client:
                throttle_ms = actions[name](client)
                if throttle_ms:
                    longest.append(time.time() + throttle_ms / 1000)

    def connect() -> None:
        while not ended.wait(0.2):
            with (
                contextlib.suppress(ClosedError, ConnectionError),
                WireClient(broker.bootstrap_servers, None, "app", source=ADDRESS),
            ):
                pass

    threads = [threading.Thread(target=run, args=(name,)) for name in actions] + [threading.Thread(target=connect)]
    for thread in threads:
        thread.start()
    try:
        yield longest
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _present(folder: Path, sources: Mapping[str, str], server: str, since: float) -> dict[tuple[str, str], dict[str, Any]]:
    """What ``headroom`` shows now from each source, and ``why`` of each client from the exporter's page."""
    shown = {}
    for source in HEADROOM:
        done = invoke("headroom", "--bootstrap-server", server, "--traffic", sources[source], "--format", "json", cwd=folder)
        assert done.code == 0, done.err
        shown["headroom", source] = done.json()
    for who in (*LIMITED, ADDRESS):
        command = ("why", "quotas", *_names(who), "--since", _moment(since), "--traffic", sources["page"], "--format", "json")
        done = invoke(*command, cwd=folder / "repository")
        assert done.out, done.err
        shown["why", who] = done.json()
    return shown


def _names(who: str) -> tuple[str, str]:
    return ("--name", f"ip={ADDRESS}") if who == ADDRESS else ("--names", f"user={who},client-id=app")


def _moment(second: float) -> str:
    return datetime.datetime.fromtimestamp(second, tz=datetime.UTC).isoformat()


def why(recording: Recording, source: str, who: str, since: float, until: float) -> dict[str, Any]:
    name = _names(who)
    store = ("--traffic-store", str(recording.folder / "store")) if source == "prometheus" else ()
    times = ("--since", _moment(since), "--until", _moment(until))
    command = ("why", "quotas", *name, *times, "--traffic", recording.sources[source], *store, "--format", "json")
    done = invoke(*command, cwd=recording.folder / "repository")
    assert done.out, done.err
    report: dict[str, Any] = done.json()
    return report


SOURCES = ("log", "recorder", "prometheus")
HEADROOM = ("log", "recorder", "prometheus", "page")
RECORDED = {
    "log": {"prod", "cons", "reqs", "old", "new"},
    "recorder": {"prod", "cons", "reqs", "old", "new"},
    "prometheus": {"prod", "cons", "reqs", "old", "new"},
    "page": {"prod", "cons", "reqs", "old", "new"},
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("who", [*LIMITED, ADDRESS])
def test_no_answer_about_any_phase_is_false(recording: Recording, source: str, who: str) -> None:
    first, limited, raised, end = recording.starts
    key, limit, _ = ADDRESS_LIMIT if who == ADDRESS else LIMITED[who]
    silent = ("clear", "unknown") if source == "log" and who != ADDRESS else ("unknown",)

    before = why(recording, source, who, first, limited - 1)
    during = why(recording, source, who, limited + 1, raised)
    after = why(recording, source, who, max(raised, recording.calm) + 1, end)
    whole = why(recording, source, who, first, end)

    assert before["answer"] in silent, before
    assert after["answer"] in silent, after
    expected = {"throttled"} if who in RECORDED[source] else {"unknown", "computed"}
    for report in (during, whole):
        assert report["answer"] in expected, report
        causes = {(group["key"], group["limit"]) for group in report["groups"] if group["cause"]}
        assert causes <= {(key, limit)}, report
        if report["answer"] == "throttled":
            assert causes, report
            origin = next(group["origin"] for group in report["groups"] if group["cause"])
            assert origin["subject"] == "Phase 1"
        if report["incident"] is not None:
            begin = datetime.datetime.fromisoformat(report["incident"]["begin"]).timestamp()
            assert limited - LATE_S <= begin < raised, (report["incident"]["begin"], recording.starts)


def load_of(recording: Recording, place: int, source: str, who: str) -> dict[str, Any] | None:
    """The row of a client's quota group in ``headroom``, in phase ``place`` of the limits; ``None``: there is none."""
    key = (ADDRESS_LIMIT if who == ADDRESS else LIMITED[who])[0]
    tag = {"ip": ADDRESS} if who == ADDRESS else {"user": who}
    rows = recording.moments[place - 1]["headroom", source]["groups"]
    found = [row for row in rows if row["key"] == key and row["bucket"] == tag]
    return max(found, key=lambda row: row["throttled"] is not None, default=None)


@pytest.mark.parametrize("source", HEADROOM)
@pytest.mark.parametrize("who", [*LIMITED, ADDRESS])
def test_headroom_names_each_throttled_group_and_no_other(recording: Recording, source: str, who: str) -> None:
    during, after = (load_of(recording, place, source, who) for place in (1, 2))
    if who in RECORDED[source]:
        assert during is not None
        assert during["throttled"] is not None, during
    assert after is None or after["throttled"] is None, after
    if who == ADDRESS and during is not None:
        # Nothing shows delayed addresses, and a note says so.
        notes = recording.moments[0]["headroom", source]["notes"]
        assert any("connection_creation_rate" in note["message"] for note in notes), notes


@pytest.mark.parametrize("who", [*LIMITED, ADDRESS])
def test_a_page_shows_why_a_client_is_throttled_now(recording: Recording, who: str) -> None:
    during, after = (moment["why", who] for moment in recording.moments)
    assert during["answer"] in ({"throttled"} if who in RECORDED["page"] else {"unknown", "computed"}), during
    assert after["answer"] == "unknown", after


def test_the_documentation_has_what_each_source_showed(recording: Recording) -> None:
    rows = {ADDRESS_LIMIT[0]: (ADDRESS,)}
    for who, (key, _, _) in LIMITED.items():
        rows[key] = (*rows.get(key, ()), who)
    keys = (*dict.fromkeys(key for key, _, _ in LIMITED.values()), ADDRESS_LIMIT[0])

    def cell(source: str, key: str) -> str:
        return f"{_why_word(recording, source, rows[key])}, {_headroom_word(recording, source, rows[key])}"

    lines = [f"| {NAMES[source]} | {' | '.join(cell(source, key) for key in keys)} |" for source in (*SOURCES, "page")]
    pages = [page.read_text("utf-8") for page in (Path(__file__).parents[2] / "docs").glob("*.md")]
    assert any(all(line in page for line in lines) for page in pages), "\n".join(lines)


NAMES = {"log": "request log", "recorder": "recorder", "prometheus": "Prometheus", "page": "exporter page"}


def _why_word(recording: Recording, source: str, clients: tuple[str, ...]) -> str:
    """The weakest answer of ``why`` about these clients in the second phase."""
    _, limited, raised, _ = recording.starts
    answers = {
        recording.moments[0]["why", who]["answer"]
        if source == "page"
        else why(recording, source, who, limited + 1, raised)["answer"]
        for who in clients
    }
    words = {"throttled": "throttled", "computed": "computed"}
    return min((words.get(answer, "unknown") for answer in answers), key=("unknown", "computed", "throttled").index)


def _headroom_word(recording: Recording, source: str, clients: tuple[str, ...]) -> str:
    """The weakest of what ``headroom`` shows."""
    if source not in HEADROOM:
        return "not read"
    loads = [load_of(recording, 1, source, who) for who in clients]
    words = ["nothing" if load is None else "rate" if load["throttled"] is None else "throttled" for load in loads]
    return min(words, key=("nothing", "rate", "throttled").index)
