"""Manifests as text, for tests that write files."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping

from reconciler.documents import SNAPSHOT
from reconciler.model.entity import Entity
from reconciler.model.quota import LeaderSpread
from reconciler.model.state import ClusterIdentity, CurrentState, Observed, ObservedFrom
from tests.builders import NOON

PLAIN_CLUSTER = """\
apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {name: c1}
spec:
  prune: never
  connection: {bootstrapServers: ["127.0.0.1:9092"]}
"""
PLAIN_QUOTAS = """\
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: payments}
spec:
  quotas:
    - match: {user: payments-api}
      quotas: {producer_byte_rate: 20MiB}
"""
"""A manifest as most users write it."""


def cluster(name: str = "prod", /, **spec: object) -> str:
    """A Cluster manifest; ``spec`` in JSON, which is YAML too."""
    fields = {"prune": "confirm", **spec}
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in fields.items())
    return f"apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {{name: {json.dumps(name)}}}\nspec:\n{lines}"


def prod_cluster(cluster_id: str, server: str) -> str:
    """The document of a cluster that prunes nothing."""
    return cluster(prune="never", clusterId=cluster_id, connection={"bootstrapServers": [server]})


def quotas(*entries: tuple[Mapping[str, object], Mapping[str, object]], owner: str | None = None, **spec: object) -> str:
    """A ClientQuotas document of pairs of match and quotas."""
    metadata = {"name": "team", **({"owner": owner} if owner else {})}
    rows = [{"match": match, "quotas": values} for match, values in entries]
    body = json.dumps({**spec, "quotas": rows})
    return f"apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nmetadata: {json.dumps(metadata)}\nspec: {body}\n"


def repository(**spec: object) -> str:
    """A Repository document."""
    return f"apiVersion: kafka-quotas/v1\nkind: Repository\nspec: {json.dumps(spec)}\n"


def snapshot(
    entities: Mapping[Entity, Mapping[str, float]],
    cluster_id: str | None = "c1",
    *,
    brokers: tuple[int, ...] = (),
    leaders: LeaderSpread | None = None,
    at: datetime.datetime = NOON,
) -> str:
    """A snapshot document."""
    state = CurrentState(
        cluster=ClusterIdentity(name=None, id=cluster_id, kafka_version="4.3"),
        observed=Observed(at=at, origin=ObservedFrom.BROKER),
        entities=dict(entities),
        brokers=brokers,
        leaders=leaders,
    )
    return SNAPSHOT.text(state)
