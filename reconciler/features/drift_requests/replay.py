"""The drift of a cluster against recorded traffic: what its values throttle, and what the declared ones would."""

from __future__ import annotations

from typing import Final

from reconciler.cli.traffic_options import dataset_time, prometheus_request
from reconciler.errors import ReconcilerError
from reconciler.model import CurrentState
from reconciler.render import backtest_view, fold, prose, view_markdown
from reconciler.workflows import (
    BacktestOptions,
    Intent,
    configured_server,
    configured_since,
    configured_traffic,
    proposal_of,
    run_backtest,
)

_TITLE: Final = "What recorded traffic shows: the values of the cluster before, the declared values after a revert"


def replay_markdown(intent: Intent, current: CurrentState, *, budget: int) -> tuple[str, ...]:
    """The backtest of a revert by the traffic of the Cluster manifest, or why there is none; nothing without ``spec.traffic``."""
    spec, trusted = intent.spec, intent.trusted
    if spec.traffic is None:
        return ()
    try:
        traffic = configured_traffic(spec, trusted)
        server = prometheus_request(
            traffic, since=None, until=None, match=(), http_config=None, store=None, server=configured_server(spec, trusted)
        )
        between = dataset_time(traffic, since=configured_since(spec, None), until=None)
        options = BacktestOptions(traffic=traffic, prometheus=server, between=between)
        report = run_backtest(proposal_of(intent, current), options)
    except ReconcilerError as error:
        return (f"**Not checked against traffic:** {prose(str(error), begins_line=False)}", "")
    text = view_markdown(backtest_view(report), budget=budget).partition("\n\n")[2].strip()
    return (*fold(_TITLE, text.split("\n")), "")
