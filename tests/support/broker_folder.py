"""A folder with manifests, and a real broker as their cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.features.sandbox.spec import Sandbox
from tests.support import manifests, raw_quotas
from tests.support.command import Done, invoke


class BrokerFolder:
    """Declares one cluster, which prunes as ``prune`` says, and quotas for it."""

    def __init__(self, folder: Path, sandbox: Sandbox, *, prune: str = "never") -> None:
        self.folder = folder
        self.server = sandbox.bootstrap_servers
        self.cluster(prune=prune)

    def cluster(self, **spec: object) -> None:
        """Write the Cluster manifest."""
        text = manifests.cluster("test", connection={"bootstrapServers": [self.server]}, **spec)
        (self.folder / "cluster.yaml").write_text(text)

    def quotas(self, *entries: tuple[Mapping[str, object], Mapping[str, object]]) -> None:
        """Write the quotas, as pairs of match and values."""
        (self.folder / "quotas.yaml").write_text(manifests.quotas(*entries))

    def declare(self, **rates: object) -> None:
        """Write the producer byte rate of each user."""
        self.quotas(*(({"user": name}, {"producer_byte_rate": rate}) for name, rate in rates.items()))

    def run(self, *arguments: str) -> Done:
        """Run ``kafka-quotas`` in the folder."""
        return invoke(*arguments, cwd=self.folder)

    def live(self) -> dict[raw_quotas.RawEntity, dict[str, float]]:
        """What the broker has."""
        return raw_quotas.describe(self.server)
