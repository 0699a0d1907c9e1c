"""A folder with a cluster, manifests and months of traffic, in which ``rightsize`` runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import manifests
from tests.support.command import Done, invoke
from tests.support.recorded_parquet import Flow, write_traffic

DAY_S = 86_400.0
MIB = 1024 * 1024


def burst(
    user: str,
    rate: float,
    *,
    days: float = 100,
    since: float = 0,
    broker: int = 1,
    hours: float = 6,
    kind: str = "produce",
    throttled: bool = False,
) -> Flow:
    """Alone in its window, a burst of ten seconds of the rate has exactly this rate on a broker."""
    return Flow(
        user=user,
        broker=broker,
        kind=kind,
        amount=round(rate * 10),
        every_s=hours * 3600,
        begin_s=since * DAY_S,
        end_s=(since + days) * DAY_S,
        throttled=throttled,
    )


class World:
    """Manifests and a file of traffic."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("cluster.yaml", manifests.cluster())

    def write(self, name: str, text: str) -> Path:
        path = self.folder / "quotas" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def text(self, name: str = "team.yaml") -> str:
        return (self.folder / "quotas" / name).read_text("utf-8")

    def limits(self, **limits: str) -> None:
        """The producer limit of each user, in one file."""
        self.write("team.yaml", manifests.quotas(*(({"user": user}, {"producer_byte_rate": v}) for user, v in limits.items())))

    def traffic(self, *flows: Flow) -> None:
        """Beside a client without a quota that always sends, so that no time looks unrecorded."""
        steady = [
            Flow(user="steady", broker=broker, amount=1, every_s=600, begin_s=0, end_s=max(flow.end_s for flow in flows))
            for broker in {flow.broker for flow in flows}
        ]
        write_traffic(self.folder / "traffic.parquet", [*steady, *flows])

    def run(self, *arguments: str) -> Done:
        return invoke("rightsize", "quotas", "--cluster", "prod", "--traffic", "traffic.parquet", *arguments, cwd=self.folder)

    def sized(self, *arguments: str) -> dict[str, dict[str, Any]]:
        """By user what the document has of its quota."""
        done = self.run("--format", "json", *arguments)
        assert done.code == 0, done.err
        return {_name(quota["entity"]): quota for quota in json.loads(done.out)["quotas"]}

    def verdicts(self, *arguments: str) -> dict[str, str]:
        return {name: quota["verdict"] for name, quota in self.sized(*arguments).items()}


def _name(entity: dict[str, str | None] | Sequence[dict[str, str | None]]) -> str:
    first = entity if isinstance(entity, dict) else entity[0]
    return str(first.get("user", first.get("name")))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
