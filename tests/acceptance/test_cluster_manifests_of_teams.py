"""A Cluster manifest in a team's folder that names production: on a real broker it once lifted every limit of production."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.bad_servers import serving
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, repository

RATE = "producer_byte_rate"
OWNERS = {
    "platform": {"paths": ["teams/platform/**"]},
    "payments": {"paths": ["teams/payments/**"], "entities": [{"user": {"prefix": "payments-"}}]},
}
LIFTED = {"too-many-removals": {"percent": 100, "count": 1000}, "too-many-changes": {"percent": 100, "count": 1000}}
ACCEPTED = [
    {"guard": guard, "until": "2099-01-01", "reason": "ours"} for guard in ("default-entity", "large-reduction", "scope-overlap")
]
LIVE = [*(f"payments-{number}" for number in range(7)), "payments-settlement", "mirror-eu", "platform-1"]
EVIL = "teams/payments/cluster.yaml"


def entity(name: str) -> raw_quotas.RawEntity:
    return frozenset({("user", name)})


class Production:
    """A repository with owners, guards and a protected entity, and ten entities on the broker that it is for."""

    def __init__(self, folder: Path, server: str) -> None:
        self.server = server
        self.repo = GitRepository(folder)
        raw_quotas.alter(server, {entity(name): {RATE: 1000.0} for name in LIVE})
        raw_quotas.settled(server)
        self.repo.write("kafka-quotas.yaml", repository(owners=OWNERS))
        self.write_production()
        entries = [({"user": name}, {RATE: 1000}) for name in LIVE if name.startswith("payments-")]
        self.repo.write("teams/payments/quotas.yaml", quotas(*entries, owner="payments"))
        self.repo.commit()
        self.repo.branch()

    def write_production(self, **more: object) -> None:
        self.repo.write(
            "clusters/production.yaml",
            cluster(
                "production",
                connection={"bootstrapServers": [self.server]},
                scope={"exclude": [{"user": {"prefix": "mirror-"}}]},
                protected=[{"user": "payments-settlement"}],
                guards={"too-many-removals": {"percent": 5, "count": 1}},
                **more,
            ),
        )

    def attack(self, *servers: str, place: str = EVIL, **more: object) -> None:
        """The cluster again under another name, without limits; nothing is declared for it but one entity."""
        connection = {"bootstrapServers": list(servers)}
        self.repo.write(
            place, cluster("payments-own", connection=connection, prune="always", guards=LIFTED, accept=ACCEPTED, **more)
        )
        only = quotas(({"user": "payments-x"}, {RATE: 5}), owner="payments", clusters=["payments-own"])
        self.repo.write("teams/payments/quotas.yaml", only)
        self.repo.commit()

    def apply(self, *arguments: str) -> Done:
        return invoke("apply", "--cluster", "payments-own", "--auto-approve", *arguments, cwd=self.repo.folder)

    def is_untouched(self) -> bool:
        return raw_quotas.describe(self.server) == {entity(name): {RATE: 1000.0} for name in LIVE}


@pytest.fixture
def production(tmp_path: Path, clean_kafka: Sandbox) -> Production:
    return Production(tmp_path / "repository", clean_kafka.bootstrap_servers)


@pytest.mark.kafka
def test_production_under_another_name_in_a_team_s_folder_is_refused_before_and_after_merge(production: Production) -> None:
    production.attack(production.server)
    refused = production.apply()
    assert (refused.code, production.is_untouched()) == (1, True), refused.err
    assert f"{EVIL}:1:1: error: a Cluster manifest must not lie in '{EVIL}'" in refused.out
    in_request = production.apply("--trusted-ref", "main")
    assert (in_request.code, production.is_untouched()) == (1, True)
    assert "[cluster-misplaced]" in in_request.out
    production.repo.git("branch", "-f", "main")
    merged = production.apply("--trusted-ref", "main")
    assert (merged.code, production.is_untouched()) == (1, True)
    assert f"main:{EVIL}:1:1" in merged.err


@pytest.mark.kafka
def test_another_address_of_production_needs_production_s_id_and_then_its_entities_overlap(production: Production) -> None:
    drift = invoke("drift", "--cluster", "production", "--format", "json", cwd=production.repo.folder).json()
    cluster_id = drift["cluster"]["id"]
    production.write_production(clusterId=cluster_id)
    production.repo.commit()
    production.repo.git("branch", "-f", "main")
    host, port = production.server.split(",")[0].rsplit(":", 1)
    other = f"{'localhost' if host == '127.0.0.1' else '127.0.0.1'}:{port}"
    production.attack(other, place="clusters/payments.yaml")
    unnamed = production.apply()
    assert (unnamed.code, production.is_untouched()) == (3, True), unnamed.err
    assert "payments-own has no clusterId" in unnamed.err
    assert "is cluster production (clusters/production.yaml:1:1)" in unnamed.err
    in_request = production.apply("--trusted-ref", "main")
    assert (in_request.code, production.is_untouched()) == (3, True)
    assert "cluster payments-own is new: main has no Cluster manifest" in in_request.err
    production.repo.write(
        "clusters/payments.yaml",
        cluster(
            "payments-own",
            connection={"bootstrapServers": [other]},
            prune="never",
            guards={"large-reduction": {"factor": 0.001}},
            clusterId=cluster_id,
        ),
    )
    production.repo.write("teams/payments/quotas.yaml", quotas(({"user": "payments-1"}, {RATE: 5}), owner="payments"))
    overlapping = production.apply()
    assert (overlapping.code, production.is_untouched()) == (3, True), overlapping.err
    assert "Guard scope-overlap: The manifests also declare user=payments-1 for production" in overlapping.out


def test_credentials_are_not_sent_to_an_address_that_a_team_names(tmp_path: Path) -> None:
    taken: list[str] = []
    repo = GitRepository(tmp_path / "repository")
    repo.write("kafka-quotas.yaml", repository(owners=OWNERS))
    repo.write("clusters/production.yaml", cluster("production", connection={"bootstrapServers": ["127.0.0.1:1"]}))
    repo.write(
        "clusters/client.properties",
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="ci" password="secret";\n',
    )
    with serving(lambda _: taken.append("theirs")) as theirs:
        connection = {"bootstrapServers": [f"127.0.0.1:{theirs}"], "properties": "../../clusters/client.properties"}
        repo.write(EVIL, cluster("payments-own", connection=connection))
        repo.write("teams/payments/quotas.yaml", quotas(({"user": "payments-x"}, {RATE: 5}), owner="payments"))
        repo.commit()
        for options in ((), ("--trusted-ref", "main")):
            done = invoke("plan", "--all-clusters", *options, cwd=repo.folder)
            assert done.code == 1
            assert "[cluster-misplaced]" in done.out
    assert taken == []
