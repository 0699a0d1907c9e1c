"""Manifests of a size: the same users, client ids and values every time."""

from __future__ import annotations

from pathlib import Path

HEAD = """apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {{name: team-{number}, owner: team-{number}}}
spec:
  quotas:
"""
CLUSTER = """apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {name: bench}
spec:
  connection: {bootstrapServers: ["127.0.0.1:9092"]}
  prune: confirm
"""


def values_of(number: int) -> dict[str, int]:
    """The two quotas of a user."""
    return {"producer_byte_rate": (number % 50 + 1) * 1024**2, "consumer_byte_rate": (number % 50 + 1) * 2 * 1024**2}


def user_of(number: int) -> str:
    """The name of a user."""
    return f"team-{number % 200}-service-{number}"


def entry(number: int) -> str:
    """One entry, in the form that people write: values with units."""
    size = number % 50 + 1
    quotas = f"      quotas:\n        producer_byte_rate: {size}MiB\n        consumer_byte_rate: {2 * size}MiB\n"
    return f"    - match: {{user: {user_of(number)}}}\n{quotas}"


def write_manifests(folder: Path, *, entries: int, files: int) -> list[Path]:
    """``entries`` entries spread over ``files`` files below ``folder``, and one Cluster document; the paths of all."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "cluster.yaml"]
    paths[0].write_text(CLUSTER, encoding="utf-8")
    for number in range(files):
        path = folder / f"team-{number:04d}.yaml"
        text = HEAD.format(number=number) + "".join(entry(n) for n in range(number, entries, files))
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def write_units(folder: Path, *, entries: int, files: int, every: int) -> Path:
    """The folder of manifests in which every user has 1 MiB/s and 2 MiB/s on each of four brokers.

    One of ``every`` entries declares the first as a total or by a profile, in turn; 0: none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    values = ("{clusterTotal: 4MiB}", "")
    budgets = "".join(f"    - {{owner: team-{number}, producer_byte_rate: 1000MiB}}\n" for number in range(files))
    profiles = "  profiles: {plain: {quotas: {producer_byte_rate: 1MiB, consumer_byte_rate: 2MiB}}}\n"
    repository = f"apiVersion: kafka-quotas/v1\nkind: Repository\nspec:\n  budgets:\n{budgets}{profiles}"
    (folder / "kafka-quotas.yaml").write_text(repository, encoding="utf-8")
    (folder / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")

    def entry_of(number: int) -> str:
        match = f"    - match: {{user: service-{number}}}\n"
        kind = number // every % len(values) if every and number % every == 0 else None
        if kind is not None and not values[kind]:
            return f"{match}      profile: plain\n"
        value = "1MiB" if kind is None else values[kind]
        return f"{match}      quotas:\n        producer_byte_rate: {value}\n        consumer_byte_rate: 2MiB\n"

    for number in range(files):
        text = HEAD.format(number=number) + "".join(entry_of(n) for n in range(number, entries, files))
        (folder / f"team-{number:04d}.yaml").write_text(text, encoding="utf-8")
    return folder
