"""A limit that is removed has a result in the comment: that of the quota groups which had it before."""

from __future__ import annotations

from pathlib import Path

from reconciler.model import Entity
from tests.builders import user
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.markdown_views import by_github

RECORDING = Path(__file__).parents[2] / "traffic" / "recordings" / "kafka-4.3.1"
BOB = {"producer_byte_rate": 1e7, "consumer_byte_rate": 2e7}


def rows(folder: Path, live: dict[Entity, dict[str, float]]) -> tuple[list[list[str]], str]:
    """The table of the comment on manifests that give bob a ``request_percentage`` and nothing else, and its whole text."""
    (folder / "quotas").mkdir()
    (folder / "quotas/cluster.yaml").write_text(cluster(prune="always", backtest={"history": {"hours": 0}}))
    (folder / "quotas/bob.yaml").write_text(quotas(({"user": "bob"}, {"request_percentage": 150})))
    (folder / "now.json").write_text(snapshot(live))
    for command in (
        ("plan", "quotas", "--current", "now.json", "--out", "json=plan.json"),
        ("backtest", "quotas", "--current", "now.json", "--traffic", str(RECORDING), "--out", "json=backtest.json"),
        ("comment", "plan.json", "--backtest", "backtest.json", "--dry-run"),
    ):
        done = invoke(*command, cwd=folder)
        assert done.code == 0, done.err
    seen = by_github(done.out)
    return [row[1:] for row in seen.rows[1:]], seen.text()


def test_limits_that_are_replaced_by_another_kind_are_all_judged(tmp_path: Path) -> None:
    table, text = rows(tmp_path, {user("bob"): BOB})
    assert [(row[0], row[1].partition("→ ")[2].split(",")[0], row[2].split(",")[0]) for row in table] == [
        # Quotas throttled two of the clients when they were recorded, and a log lacks the time of network threads.
        ("bob consumer", "removed", "inconclusive"),
        ("bob producer", "removed", "inconclusive in 1 of 3 quota groups"),
        ("bob request", "150\N{NO-BREAK SPACE}%", "inconclusive"),
    ]
    assert "not checked" not in text
    assert "Inconclusive: 3 of 3 changed quotas" in text.partition("More about")[0]
