"""What ``backtest`` and ``simulate`` have in common: manifests, current quotas, and how recorded traffic is read."""

from __future__ import annotations

import argparse
import contextlib
import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import options, output
from reconciler.cli.arguments import JudgedTrafficArguments
from reconciler.cli.traffic_options import (
    add_broker_model_options,
    add_known_clients_option,
    add_prometheus_options,
    add_reading_options,
    add_spark_options,
    backtest_options,
    dataset_time,
    prometheus_request,
)
from reconciler.errors import ManifestError, UsageError

if TYPE_CHECKING:
    from reconciler.model import ClusterSpec, CurrentState
    from reconciler.workflows import BacktestOptions, Intent, TrustedTree


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayArguments(JudgedTrafficArguments):
    """Options of both commands. ``settings``: those of ``--set``."""

    settings: tuple[str, ...]
    trusted_ref: str | None
    fail_on: str
    details: bool
    out: tuple[str, ...]
    since: datetime.datetime | None
    until: datetime.datetime | None


def add_replay_options(parser: argparse.ArgumentParser) -> None:
    """How traffic is read, and which broker is modelled."""
    add_prometheus_options(parser)
    add_known_clients_option(parser)
    add_reading_options(parser)
    add_spark_options(parser)
    add_broker_model_options(parser)


def replay_options(
    args: ReplayArguments, traffic: Sequence[str], spec: ClusterSpec, trusted: TrustedTree | None
) -> BacktestOptions:
    """How to read ``traffic``, or where there is none, the server of the Cluster manifest. Raises ``UsageError``."""
    from reconciler.workflows import configured_server, is_prometheus

    of_files = bool(traffic) and not any(map(is_prometheus, traffic))
    prometheus = prometheus_request(
        tuple(traffic),
        # Of files, the rows between these times are judged.
        since=None if of_files else args.since,
        until=None if of_files else args.until,
        match=args.match,
        http_config=args.http_config,
        store=args.traffic_store,
        server=configured_server(spec, trusted),
    )
    if prometheus is None and not traffic:
        raise UsageError("No traffic is given. Pass --traffic, or set spec.traffic of the Cluster manifest")
    if prometheus is None and args.known_clients:
        raise UsageError("--known-clients is for --traffic prometheus+http(s)://HOST only")
    return backtest_options(
        args,
        traffic=traffic,
        mapping=args.mapping,
        prometheus=prometheus,
        between=dataset_time(tuple(traffic), since=args.since, until=args.until),
    )


def read_intent(args: ReplayArguments, files: Sequence[tuple[str, Path]], *, needed: bool) -> Intent | None:
    """What the manifests want. ``None`` where no path, cluster or reference is given, and manifests are not ``needed``.

    ``files``: of ``--out``, which get the findings of manifests with errors. Raises ``ManifestError``, ``UsageError``,
    ``GitError`` and ``UntrustedError``.
    """
    from reconciler.workflows import References, load_intent

    if not needed and not args.paths and args.cluster is None and args.trusted_ref is None:
        return None
    try:
        return load_intent(args.paths or ["."], cluster=args.cluster, references=References(trusted=args.trusted_ref))
    except ManifestError as error:
        output.write_findings(files, error.findings)
        output.print_findings(args, error.findings, to_stdout=True)
        raise


def read_current(args: ReplayArguments, intent: Intent | None) -> CurrentState | None:
    """The quotas of the snapshot, or of the live cluster that an option names, with leaders where a limit depends on them."""
    from reconciler.model import ClusterSpec
    from reconciler.workflows import open_cluster, read_state, snapshot_reader, uses_leaders, with_leaders

    spec, trusted = (ClusterSpec(), None) if intent is None else (intent.spec, intent.trusted)
    if args.current is not None:
        return read_state(spec, snapshot_reader(args.current, trusted=trusted.files if trusted is not None else None))
    if args.bootstrap_server is None and args.zookeeper is None:
        return None
    with contextlib.closing(open_cluster(spec, options.access(args), trusted=trusted)) as cluster:
        current = read_state(spec, cluster)
        return with_leaders(current, cluster) if uses_leaders(intent, args.quota_callback) else current
