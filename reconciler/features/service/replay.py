"""What the recorded traffic of the Cluster manifest shows of a change that the service would write."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.cli.traffic_options import configured_backtest
from reconciler.documents import headline
from reconciler.errors import ReconcilerError
from reconciler.model import BacktestReport, CurrentState
from reconciler.render import rule_sentences
from reconciler.workflows import Intent, proposal_of, run_backtest


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The answer of a backtest. ``failed``: a sentence for each rule that fails. ``was_read``: whether the traffic was."""

    words: str
    failed: tuple[str, ...] = ()
    was_read: bool = True
    report: BacktestReport | None = None
    """The whole answer. ``None``: the traffic was not read."""


def replay_plan(intent: Intent, current: CurrentState) -> Replay | None:
    """Replay ``spec.traffic`` against the manifests; ``None`` without it. Traffic that cannot be read stops nothing."""
    if intent.spec.traffic is None:
        return None
    try:
        report = run_backtest(proposal_of(intent, current), configured_backtest(intent.spec, intent.trusted))
    except ReconcilerError as error:
        return Replay(words=f"Nothing was checked against traffic: {error}", was_read=False)
    failed = tuple(f"rule fails: {sentence}" for sentence, passes in rule_sentences(report.rules) if not passes)
    return Replay(words=f"Backtest: {headline(report)[0]}", failed=failed, report=report)
