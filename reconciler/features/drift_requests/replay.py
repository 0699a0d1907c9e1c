"""The drift of a cluster against recorded traffic: what its values throttle, and what the declared ones would."""

from __future__ import annotations

from typing import Final

from reconciler.cli.traffic_options import configured_backtest
from reconciler.errors import ReconcilerError
from reconciler.model import CurrentState
from reconciler.render import backtest_view, fold, prose, view_markdown
from reconciler.workflows import Intent, proposal_of, run_backtest

_TITLE: Final = "What recorded traffic shows: the values of the cluster before, the declared values after a revert"


def replay_markdown(intent: Intent, current: CurrentState, *, budget: int) -> tuple[str, ...]:
    """The backtest of a revert by the traffic of the Cluster manifest, or why there is none; nothing without ``spec.traffic``."""
    if intent.spec.traffic is None:
        return ()
    try:
        report = run_backtest(proposal_of(intent, current), configured_backtest(intent.spec, intent.trusted))
    except ReconcilerError as error:
        return (f"**Not checked against traffic:** {prose(str(error), begins_line=False)}", "")
    text = view_markdown(backtest_view(report), budget=budget).partition("\n\n")[2].strip()
    return (*fold(_TITLE, text.split("\n")), "")
