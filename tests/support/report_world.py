"""Reports to look at: clusters in every state, last runs, traffic against limits, and names as strangers choose them."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from reconciler.documents import AuditedRun, AuditRecord, RecordedBaseline
from reconciler.errors import UnreachableError
from reconciler.features.insight.observe import GroupLoad, Headroom, Throttling
from reconciler.features.insight.predictions import Agreement, ComparedGroup, RunComparison
from reconciler.features.insight.report import ClusterOverview, Overview, declared_only, overview_of
from reconciler.features.insight.report_page import report_html
from reconciler.model.cluster import Prune, Scope, Verdict
from reconciler.model.effect import BucketName
from reconciler.model.entity import DEFAULT, Entity, ForeignText, MatchKind, Selector, TypeMatch
from reconciler.model.finding import Span
from reconciler.model.message import compose
from reconciler.model.plan import ApplyResult, ChangeStatus, ClusterFailure, ManifestCommit
from reconciler.model.quota import QuotaKey
from reconciler.model.run_context import Prediction
from reconciler.model.state import ClusterIdentity, DesiredEntity, DesiredState
from reconciler.workflows.drift import GivenBaseline
from reconciler.workflows.intent import Intent
from tests.builders import NOON, client, cluster_spec, current, declared, ip, pair, user
from tests.fakes import FakeCluster
from tests.support.hostile_names import HOSTILE

MIB = 1024.0 * 1024
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PAYMENTS = user("payments-api")
SETTLEMENT = pair("payments-api", "settlement")

EU_DECLARED = (
    replace(
        declared(PAYMENTS, 9, producer_byte_rate=20 * MIB, consumer_byte_rate=40 * MIB, request_percentage=200),
        owner="team-payments",
        note="peak of the nightly settlement run, see the runbook",
        source=Span(file="teams/payments/quotas.yaml", line=9, column=7),
    ),
    replace(declared(SETTLEMENT, 14, producer_byte_rate=50 * MIB), owner="team-payments"),
    replace(declared(pair("payments-api", DEFAULT), 18, producer_byte_rate=5 * MIB), owner="team-payments"),
    replace(declared(user("search-indexer"), 4, consumer_byte_rate=80 * MIB), owner="team-search"),
    replace(declared(user("reporting"), 8, consumer_byte_rate=16 * MIB), owner="team-analytics"),
    declared(user(DEFAULT), 6, producer_byte_rate=MIB, consumer_byte_rate=2 * MIB),
    declared(client(DEFAULT), 9, request_percentage=50),
    declared(ip("10.0.0.7"), 12, connection_creation_rate=50),
    declared(ip(DEFAULT), 14, connection_creation_rate=200),
)
EU_LIVE: Mapping[Entity, Mapping[str, float]] = {
    PAYMENTS: {"producer_byte_rate": 20 * MIB, "consumer_byte_rate": 40 * MIB, "request_percentage": 200.0},
    SETTLEMENT: {"producer_byte_rate": 30 * MIB},
    pair("payments-api", DEFAULT): {"producer_byte_rate": 5 * MIB},
    user("search-indexer"): {"consumer_byte_rate": 60 * MIB},
    user(DEFAULT): {"producer_byte_rate": MIB, "consumer_byte_rate": 2 * MIB},
    client(DEFAULT): {"request_percentage": 50.0},
    ip("10.0.0.7"): {"connection_creation_rate": 50.0},
    ip(DEFAULT): {"connection_creation_rate": 200.0},
    client("mirror-maker"): {"producer_byte_rate": 30 * MIB},
    user("<default>"): {"producer_byte_rate": 512.0},
}
EU_BASELINE: Mapping[Entity, Mapping[str, float]] = {
    **{entity: quotas for entity, quotas in EU_LIVE.items() if entity not in (client("mirror-maker"), user("<default>"))},
    SETTLEMENT: {"producer_byte_rate": 50 * MIB},
    user("reporting"): {"consumer_byte_rate": 16 * MIB},
}
PROTECTED = (Selector(types=(("user", TypeMatch(kind=MatchKind.NAME, text="payments-api")),)),)


def intent(name: str, *entities: DesiredEntity, scope: Scope | None = None, prune: Prune = Prune.NEVER) -> Intent:
    """What manifests want of a cluster; ``payments-api`` is protected, alone and with its client ids."""
    spec = cluster_spec(name=name, protected=PROTECTED, scope=scope or Scope(), prune=prune)
    state = DesiredState(entities={one.entity: one for one in entities})
    return Intent(spec=spec, desired=state, findings=(), paths=(".",))


def cluster_of(
    name: str,
    entities: tuple[DesiredEntity, ...],
    live: Mapping[Entity, Mapping[str, float]],
    baseline: Mapping[Entity, Mapping[str, float]] | None = None,
    scope: Scope | None = None,
) -> ClusterOverview:
    """A cluster that was read."""
    state = current(live, cluster_id=f"id-of-{name}")
    recorded = None
    if baseline is not None:
        known = frozenset({client("mirror-maker")})
        title = ForeignText(name)
        recorded = RecordedBaseline(
            cluster=ClusterIdentity(name=title), source=ManifestCommit(commit="1a2b3c4"), entities=baseline, unmanaged=known
        )
    given = None if recorded is None else GivenBaseline(name="baseline.json", recorded=recorded)
    return overview_of(intent(name, *entities, scope=scope), state, source=FakeCluster(live), baseline=given)


def run(minutes: int, result: str = "done", **fields: object) -> AuditRecord:
    """A run that ended so long before noon. ``fields``: of the run or of its ending."""
    ended = NOON - datetime.timedelta(minutes=minutes)
    begun: dict[str, object] = {
        "started": ended - datetime.timedelta(seconds=3), "command": "apply", "principal": "quota-admin", "os_user": "ci",
        "cluster": ClusterIdentity(name="prod-eu", id="id-of-prod-eu"), "source": ManifestCommit(commit=COMMIT, dirty=False),
        "validate_only": False,
    }  # fmt: skip
    ending: dict[str, object] = {
        "ended": ended, "result": ApplyResult(result), "failure_reason": None, "verified": result == "done",
        "summary": {ChangeStatus.APPLIED: 3 if result == "done" else 0},
    }  # fmt: skip
    begun |= {name: value for name, value in fields.items() if name in begun}
    ending |= {name: value for name, value in fields.items() if name not in begun}
    return AuditRecord(run=AuditedRun(**begun), **ending)  # type: ignore[arg-type]  # a test names fields as it likes


def load(name: str, rate: float, limit: float | None, **fields: object) -> GroupLoad:
    """A user's quota group on broker 1."""
    defaults: dict[str, object] = {
        "broker": "1", "key": QuotaKey.PRODUCER_BYTE_RATE, "tags": {"user": name}, "rate": rate, "limit": limit,
        "source": None if limit is None else user(name),
    }  # fmt: skip
    return GroupLoad(**{**defaults, **fields})  # type: ignore[arg-type]  # a test names fields as it likes


LOADS = Headroom(
    cluster=ClusterIdentity(name="prod-eu", id="id-of-prod-eu"),
    at=NOON,
    groups=(
        load("reporting", 23 * MIB, 16 * MIB, key=QuotaKey.CONSUMER_BYTE_RATE, throttling=Throttling(mean_ms=812, since=NOON)),
        load("payments-api", 18 * MIB, 20 * MIB, owner="team-payments"),
        load("search-indexer", 40 * MIB, 80 * MIB, key=QuotaKey.CONSUMER_BYTE_RATE, broker="2"),
        load("mirror", 3 * MIB, None),
    ),
)


def overview(*clusters: ClusterOverview, **fields: object) -> Overview:
    """A report of these clusters, with nothing else unless it is given."""
    defaults: dict[str, object] = {"at": NOON, "version": "1.2.3", "source": ManifestCommit(), "clusters": clusters}
    return Overview(**{**defaults, **fields})  # type: ignore[arg-type]  # a test names fields as it likes


def company() -> Overview:
    """Three clusters: one with every kind of drift, one in sync, one that does not answer; runs and rates."""
    eu = replace(cluster_of("prod-eu", EU_DECLARED, EU_LIVE, EU_BASELINE), loads=LOADS)
    us = cluster_of(
        "prod-us",
        EU_DECLARED[:3],
        {
            e: EU_LIVE[e] if e != SETTLEMENT else {"producer_byte_rate": 50 * MIB}
            for e in (PAYMENTS, SETTLEMENT, pair("payments-api", DEFAULT))
        },
    )
    message = "no Kafka broker can be reached (b1.staging:9092: connection refused)"
    staging = declared_only(intent("staging", *EU_DECLARED[5:]), UnreachableError(message))
    runs = (
        run(30, "refused", failure_reason="guard-refused", principal=None),
        run(90, accepted=("default-entity",)),
        run(300, "nothing_to_do", cluster=ClusterIdentity(name="prod-us", id="id-of-prod-us")),
        run(
            2000,
            "partial",
            cluster=ClusterIdentity(name="prod-us", id="id-of-prod-us"),
            summary={ChangeStatus.APPLIED: 2, ChangeStatus.UNKNOWN: 1},
            failure_reason="unreachable",
            source=ManifestCommit(commit=COMMIT, dirty=True),
        ),
    )
    source = ManifestCommit(commit="89abcdef0123456789abcdef0123456789abcdef", dirty=False)
    return overview(eu, us, staging, runs=runs, audited=True, source=source)


def hostile() -> Overview:
    """Strangers' names wherever a name can be."""
    names = [name for name in HOSTILE if name]
    entities = tuple(
        replace(
            declared(user(name), 3, producer_byte_rate=5.5e6), owner=name, note=name, source=Span(file=name, line=1, column=2)
        )
        for name in names
    )
    live = {user(name): {"producer_byte_rate": 7.0, f"key-{name}": 1.0} for name in names}
    cluster = cluster_of("x" * 200, entities, live)
    clusters = [
        replace(cluster, cluster=ClusterIdentity(name=name, id=name, kafka_version=name), notes=(name,)) for name in names[:8]
    ]
    runs = tuple(
        run(
            number, principal=name, os_user=name, failure_reason=name, source=ManifestCommit(commit=name),
            accepted=(name,), command=name,
            cluster=ClusterIdentity(name=name),
        )
        for number, name in enumerate(names)
    )  # fmt: skip
    groups = tuple(load(name, 1e6, 5e5, owner=name, broker=name) for name in names)
    loads = replace(
        LOADS, cluster=ClusterIdentity(name=names[0]), groups=groups, notes=tuple(compose("{name}", name=name) for name in names)
    )
    compared = tuple(
        ComparedGroup(
            prediction=Prediction(
                bucket=BucketName(user=name, client_id=name), key="producer_byte_rate", entity=user(name), limit=5.0,
                verdict=Verdict.CLEAR, share=0.0, share_at_most=0.0, peak=1.0,
            ),
            agreement=Agreement.UNKNOWN,
        )
        for name in names
    )  # fmt: skip
    comparison = RunComparison(
        cluster=ClusterIdentity(name=names[0]), digest=None, since=NOON, until=NOON, groups=compared,
        notes=tuple(compose("{name}", name=name) for name in names),
    )  # fmt: skip
    clusters[0] = replace(clusters[0], loads=loads, comparisons=(comparison,))
    failed = ClusterFailure(cluster=ClusterIdentity(name=names[0]), failure_reason=names[1], message=names[2])
    return overview(
        *clusters, ClusterOverview(cluster=failed.cluster, failure=failed), runs=runs, audited=True,
        notes=tuple(names), source=ManifestCommit(commit=names[0], dirty=True),
    )  # fmt: skip


def large(count: int) -> Overview:
    """One cluster of so many entities, with values and classes mixed."""
    chance = random.Random(5)
    entities, live = [], {}
    for number in range(count):
        one = pair(f"user-{number}", "app") if number % 5 == 0 else user(f"user-{number}")
        rate = float(chance.randrange(1, 100)) * MIB
        entities.append(
            replace(declared(one, number + 1, producer_byte_rate=rate, consumer_byte_rate=2 * rate), owner=f"team-{number % 200}")
        )
        live[one] = {"producer_byte_rate": rate if number % 50 else rate / 2, "consumer_byte_rate": 2 * rate}
    return overview(cluster_of("large", tuple(entities), live))


def write_page(folder: Path, overview: Overview) -> Path:
    """The page, as a file that a browser can open."""
    path = folder / "report.html"
    path.write_text(report_html(overview), encoding="utf-8")
    return path
