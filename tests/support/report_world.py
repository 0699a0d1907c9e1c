"""Reports to look at: clusters in every state, and names as strangers choose them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from reconciler.errors import UnreachableError
from reconciler.features.insight.predictions import Agreement, ComparedGroup, RunComparison
from reconciler.features.insight.report import ClusterOverview, Overview, declared_only, overview_of
from reconciler.features.insight.report_page import report_html
from reconciler.model.cluster import Prune, Scope, Verdict
from reconciler.model.effect import BucketName
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch
from reconciler.model.finding import Span
from reconciler.model.message import compose
from reconciler.model.plan import ClusterFailure, ManifestCommit
from reconciler.model.run_context import Prediction
from reconciler.model.state import ClusterIdentity, DesiredEntity, DesiredState
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
PROTECTED = (Selector(types=(("user", TypeMatch(kind=MatchKind.NAME, text="payments-api")),)),)


def intent(name: str, *entities: DesiredEntity, scope: Scope | None = None, prune: Prune = Prune.NEVER) -> Intent:
    """What manifests want of a cluster; ``payments-api`` is protected, alone and with its client ids."""
    spec = cluster_spec(name=name, protected=PROTECTED, scope=scope or Scope(), prune=prune)
    state = DesiredState(entities={one.entity: one for one in entities})
    return Intent(spec=spec, desired=state, findings=(), paths=(".",))


def cluster_of(
    name: str, entities: tuple[DesiredEntity, ...], live: Mapping[Entity, Mapping[str, float]], scope: Scope | None = None
) -> ClusterOverview:
    """A cluster that was read."""
    return overview_of(intent(name, *entities, scope=scope), current(live, cluster_id=f"id-of-{name}"), source=FakeCluster(live))


def overview(*clusters: ClusterOverview, **fields: object) -> Overview:
    """A report of these clusters, with nothing else unless it is given."""
    defaults: dict[str, object] = {"at": NOON, "source": ManifestCommit(), "clusters": clusters}
    return Overview(**{**defaults, **fields})  # type: ignore[arg-type]  # a test names fields as it likes


def company() -> Overview:
    """Three clusters: one with every kind of drift, one in sync, one that does not answer."""
    eu = cluster_of("prod-eu", EU_DECLARED, EU_LIVE)
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
    source = ManifestCommit(commit="89abcdef0123456789abcdef0123456789abcdef", dirty=False)
    return overview(eu, us, staging, source=source)


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
    clusters[0] = replace(clusters[0], comparisons=(comparison,))
    failed = ClusterFailure(cluster=ClusterIdentity(name=names[0]), failure_reason=names[1], message=names[2])
    source = ManifestCommit(commit=names[0], dirty=True)
    return overview(*clusters, ClusterOverview(cluster=failed.cluster, failure=failed), source=source)


def write_page(folder: Path, overview: Overview) -> Path:
    """The page, as a file that a browser can open."""
    path = folder / "report.html"
    path.write_text(report_html(overview), encoding="utf-8")
    return path
