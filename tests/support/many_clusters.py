"""A repository as a company has it: many clusters with labels, many teams with folders, owners, limits and overrides."""

from __future__ import annotations

from pathlib import Path

HEAD = "apiVersion: kafka-quotas/v1\n"
REGIONS = ("eu", "us", "ap")
TIERS = ("gold", "silver", "bronze", "dev", "test")


def labels_of(cluster: int) -> tuple[str, str]:
    """Region and tier of a cluster, by its number."""
    return REGIONS[cluster % len(REGIONS)], TIERS[cluster % len(TIERS)]


def write_repository(root: Path, *, clusters: int = 30, teams: int = 20, users: int = 4) -> Path:
    """``users`` entries a team for every cluster, one for its gold ones, one for a single cluster; every user has an override."""
    owners = "".join(f"    team-{t}: {{paths: [teams/{t}], entities: [{{user: {{prefix: t{t}-}}}}]}}\n" for t in range(teams))
    limits = "  limits:\n    - {producer_byte_rate: {max: 100MiB}}\n    - {owner: team-0, consumer_byte_rate: {max: 1GiB}}\n"
    _write(root / "kafka-quotas.yaml", f"{HEAD}kind: Repository\nspec:\n  owners:\n{owners}{limits}")
    for number in range(clusters):
        region, tier = labels_of(number)
        metadata = f"{{name: c{number}, labels: {{region: {region}, tier: {tier}}}}}"
        _write(root / "clusters" / f"c{number}.yaml", f"{HEAD}kind: Cluster\nmetadata: {metadata}\nspec: {{prune: confirm}}\n")
    for team in range(teams):
        everywhere = "".join(_entry(f"t{team}-{n}", "1MiB") for n in range(users))
        _write(root / "teams" / str(team) / "all.yaml", _document(team, "", everywhere))
        gold = "  clusters: {labels: {tier: gold}}\n"
        _write(root / "teams" / str(team) / "gold.yaml", _document(team, gold, _entry(f"t{team}-gold", "9MiB")))
        one = f"  clusters: [c{team % clusters}]\n"
        _write(root / "teams" / str(team) / "one.yaml", _document(team, one, _entry(f"t{team}-one", "2MiB")))
    return root


def _document(team: int, clusters: str, entries: str) -> str:
    return f"{HEAD}kind: ClientQuotas\nmetadata: {{name: quotas, owner: team-{team}}}\nspec:\n{clusters}  quotas:\n{entries}"


def _entry(user: str, rate: str) -> str:
    override = "{clusters: {labels: {region: us, tier: gold}}, quotas: {producer_byte_rate: 50MiB, request_percentage: null}}"
    quotas = f"{{producer_byte_rate: {rate}, request_percentage: 200}}"
    return f"    - match: {{user: {user}}}\n      quotas: {quotas}\n      overrides: [{override}]\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
