"""The options of what a plan shows beyond its changes: a broker's check, and effects."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.workflows import Extras


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--server-check``, ``--show-effects`` and ``--known-clients``."""
    parser.add_argument(
        "--server-check",
        choices=("cluster", "sandbox"),
        help="let a broker check the changes without writing: the cluster's (needs AlterConfigs there), or a local Kafka's",
    )
    parser.add_argument("--show-effects", action="store_true", help="show which known clients move to another limit")
    parser.add_argument(
        "--known-clients", metavar="FILE", help="with --show-effects: also these clients, JSON lines of user and client-id"
    )


def extras_of(args: argparse.Namespace) -> Extras:
    """What the command line wants. Raises ``UsageError``."""
    from reconciler.workflows import Checker, Extras

    if args.known_clients and not args.show_effects:
        msg = "--known-clients says whose effects to show; it needs --show-effects"
        raise UsageError(msg)
    if args.server_check == Checker.CLUSTER and args.current:
        msg = "--server-check=cluster asks the live cluster and --current reads a file; --server-check=sandbox works with both"
        raise UsageError(msg)
    return Extras(
        server_check=Checker(args.server_check) if args.server_check else None,
        show_effects=args.show_effects,
        known_clients=Path(args.known_clients) if args.known_clients else None,
    )
