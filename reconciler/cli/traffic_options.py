"""What the options of commands that read recorded traffic ask for."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import LabelMatcher, MetricServer
    from reconciler.traffic import Between
    from reconciler.workflows import PrometheusRequest


def prometheus_request(
    traffic: Sequence[str],
    *,
    since: datetime.datetime | None,
    until: datetime.datetime | None,
    match: Sequence[str],
    http_config: str | Path | None,
    store: str | Path | None,
    server: MetricServer | None = None,
    store_option: str | None = "--traffic-store",
) -> PrometheusRequest | None:
    """What the options ask of a server; ``None`` when ``--traffic`` names none. Raises ``UsageError``.

    ``server``: that of the Cluster manifest, which is read without any ``--traffic``. Options override its parts.
    """
    from reconciler.model import MetricServer
    from reconciler.workflows import PrometheusRequest, is_prometheus, prometheus_address

    named = [argument for argument in traffic if is_prometheus(argument)]
    if named:
        server = MetricServer(address=prometheus_address(named[0]))
    elif traffic:
        server = None
    if server is None:
        times: dict[str | None, object] = {} if is_dataset(traffic) else {"--since": since, "--until": until}
        given: dict[str | None, object] = {**times, "--match": match, "--http-config": http_config, store_option: store}
        if unused := [name for name, value in given.items() if name and value]:
            also = ", for other addresses and for tables" if unused[0] in times else ""
            raise UsageError(f"{unused[0]} is for --traffic prometheus+http(s)://HOST{also} only")
        return None
    if len(traffic) > 1:
        raise UsageError("--traffic prometheus+... stands alone: give one source at a time")
    return PrometheusRequest.of(
        server,
        since=since,
        until=until,
        store=Path(store) if store else None,
        http_config=Path(http_config) if http_config else None,
        match=tuple(map(label_matcher, match)),
    )


def is_dataset(traffic: Sequence[str]) -> bool:
    """Whether Spark has to find what ``--traffic`` names."""
    from reconciler.traffic import parse_dataset

    return bool(traffic) and all(parse_dataset(argument) is not None for argument in traffic)


def dataset_time(traffic: Sequence[str], *, since: datetime.datetime | None, until: datetime.datetime | None) -> Between | None:
    """Which rows of files and datasets to read; ``None``: all."""
    if (since is None and until is None) or not traffic:
        return None
    from reconciler.traffic import Between

    return Between.of(since, until)


def label_matcher(text: str) -> LabelMatcher:
    """A ``--match``. Raises ``UsageError``."""
    from reconciler.model import LabelMatcher, escaped

    try:
        return LabelMatcher.parse(text)
    except ValueError as error:
        raise UsageError(f"--match {escaped(text)!r} is not a label matcher, such as cluster='prod' or job=~'kafka.*'") from error
