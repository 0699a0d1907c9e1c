"""Options that say what the modelled brokers are like, beside ``--kafka-version``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.workflows import ModelOptions


def add_broker_model_options(parser: argparse.ArgumentParser) -> None:
    """The settings and the class of the brokers; all go before what the Cluster document says."""
    group = parser.add_argument_group("the modelled brokers")
    group.add_argument("--window-samples", type=int, metavar="N", help="their quota.window.num (default: 11)")
    group.add_argument("--window-seconds", type=int, metavar="N", help="their quota.window.size.seconds (default: 1)")
    group.add_argument("--controller-window-samples", type=int, metavar="N", help="controller.quota.window.num (default: 11)")
    group.add_argument(
        "--controller-window-seconds", type=int, metavar="N", help="controller.quota.window.size.seconds (default: 1)"
    )
    group.add_argument(
        "--quota-callback",
        metavar="MODULE:CLASS",
        help="a Python class that says what their client.quota.callback.class says; it is imported and run. The one that the "
        "Cluster document names is loaded only with --trusted-ref, or when it is given here",
    )


def model_options(args: argparse.Namespace) -> ModelOptions:
    """As given."""
    from reconciler.workflows import ModelOptions

    return ModelOptions(
        window_samples=args.window_samples,
        window_seconds=args.window_seconds,
        controller_window_samples=args.controller_window_samples,
        controller_window_seconds=args.controller_window_seconds,
        quota_callback=args.quota_callback,
    )
