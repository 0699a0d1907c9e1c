"""A client that shares no code with ours, nor with Kafka's own (Go, franz-go): each reads what the other wrote, bit for bit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from reconciler.model.cluster import ClusterSpec
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.model.plan import ApplyResult
from reconciler.model.quota import INT_MAX, LONG_MAX
from reconciler.ports import QuotaCluster, SystemClock
from reconciler.workflows.apply import UNASKED, Approval, apply_manifests
from reconciler.workflows.connect import Access, open_cluster
from reconciler.workflows.intent import Intent
from tests.builders import client, declared, desired, ip, pair, user
from tests.fakes import Silent
from tests.support import command, raw_quotas
from tests.support.hostile_names import HOSTILE
from tests.support.polling import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

SOURCES = Path(__file__).parent / "franz_go"
DOWNLOADS_S = 300

State = Mapping[Entity, Mapping[str, float]]


class FranzGo:
    """The Go program, run against one cluster."""

    def __init__(self, program: Path, server: str) -> None:
        self._program = program
        self._server = server

    def describe(self) -> dict[Entity, dict[str, float]]:
        rows = json.loads(self._run("describe"), parse_int=float)["entities"]
        return {entity(row["entity"]): row["quotas"] for row in rows}

    def alter(self, document: object) -> None:
        """What the document's entities have is set; a quota that is null is removed."""
        self._run("alter", json.dumps(document))

    def _run(self, what: str, text: str = "") -> str:
        done = subprocess.run(
            [str(self._program), what, self._server], input=text, capture_output=True, encoding="utf-8", timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    assert go, "these tests need Go 1.24 or newer on PATH (https://go.dev); make test needs none"
    built = tmp_path_factory.mktemp("franz-go") / "interop"
    settings = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    done = subprocess.run(
        [go, "build", "-o", str(built), "."],
        cwd=SOURCES,
        env=settings,
        capture_output=True,
        text=True,
        timeout=DOWNLOADS_S,
        check=False,
    )
    assert done.returncode == 0, f"the Go program was not built; it needs Go 1.24 or newer and its modules:\n{done.stderr}"
    return built


@pytest.fixture
def franz_go(program: Path, clean_kafka: Sandbox) -> FranzGo:
    return FranzGo(program, clean_kafka.bootstrap_servers)


@pytest.fixture
def cluster(clean_kafka: Sandbox) -> Iterator[QuotaCluster]:
    connected = open_cluster(ClusterSpec(), Access(bootstrap_server=clean_kafka.bootstrap_servers))
    yield connected
    connected.close()


def entity(names: Mapping[str, str | None]) -> Entity:
    return Entity.of({kind: DEFAULT if name is None else name for kind, name in names.items()})


def as_json(one: Entity) -> dict[str, str | None]:
    return {kind: None if name is DEFAULT else name for kind, name in one.parts}


def the_ten_shapes(name: str) -> list[Entity]:
    two: tuple[EntityName, EntityName] = (name, DEFAULT)
    pairs = [pair(one, other) for one in two for other in two]
    return [*map(user, two), *map(client, two), *pairs, ip("10.0.0.7"), ip()]


def quotas(of: Entity, number: int) -> dict[str, float]:
    """All keys that the entity may have; high where they reach this test's own connections."""
    if of.types == ("ip",):
        return {"connection_creation_rate": INT_MAX - number - 1}
    return {
        "producer_byte_rate": 2.0**53 - number,
        "consumer_byte_rate": LONG_MAX if number == 0 else 1.0 + number,
        "request_percentage": 100_000.1 + number / 3,
        "controller_mutation_rate": 1e-3 + number / 7,
    }


def state_of(entities: list[Entity]) -> dict[Entity, dict[str, float]]:
    return {one: quotas(one, number) for number, one in enumerate(entities)}


WRITABLE = [name for name in HOSTILE if name and not any("\ud800" <= char <= "\udfff" for char in name)]
"""No cluster can have an empty name, or half a surrogate pair, which has no UTF-8."""

STATES = {
    "the ten shapes with every key": state_of(the_ten_shapes("app")),
    "the ten shapes of a literal <default>": state_of(the_ten_shapes("<default>")),
    "names that strangers choose": state_of([make(name) for name in WRITABLE for make in (user, client, lambda n: pair(n, n))]),
}


@pytest.fixture(params=STATES, ids=str)
def state(request: pytest.FixtureRequest) -> State:
    return STATES[request.param]


def test_it_reads_what_we_wrote(franz_go: FranzGo, cluster: QuotaCluster, state: State) -> None:
    wanted = desired(*(declared(one, **values) for one, values in state.items()))
    intent = Intent(spec=ClusterSpec(), desired=wanted, findings=(), paths=())
    accepted = Approval(accepted=("default-entity",))
    report = apply_manifests(intent, cluster, accepted, dialogue=UNASKED, clock=SystemClock(), progress=Silent())
    assert (report.result, report.verified) == (ApplyResult.DONE, True), report.message
    assert franz_go.describe() == state


def test_we_read_what_it_wrote(franz_go: FranzGo, cluster: QuotaCluster, state: State) -> None:
    franz_go.alter({"entities": [{"entity": as_json(one), "quotas": dict(values)} for one, values in state.items()]})
    wait_until(lambda: len(cluster.current_state().entities) == len(state))
    assert cluster.current_state().entities == state


def test_it_removes_and_writes_again_what_our_snapshot_has(
    franz_go: FranzGo, clean_kafka: Sandbox, state: State, tmp_path: Path
) -> None:
    servers = clean_kafka.bootstrap_servers
    raw = {frozenset(as_json(one).items()): dict(values) for one, values in state.items()}
    raw_quotas.alter(servers, raw)
    wait_until(lambda: raw_quotas.describe(servers) == raw)
    exported = command.run("export", "--bootstrap-server", servers, "--snapshot", "now.json", cwd=tmp_path)
    assert exported.code == 0, exported.err
    snapshot = json.loads((tmp_path / "now.json").read_text(encoding="utf-8"))

    gone = [{**row, "quotas": dict.fromkeys(row["quotas"])} for row in snapshot["entities"]]
    franz_go.alter({"entities": gone})
    wait_until(lambda: not raw_quotas.describe(servers))
    franz_go.alter(snapshot)
    wait_until(lambda: len(raw_quotas.describe(servers)) == len(raw))
    assert raw_quotas.describe(servers) == raw
