"""``alter --expose-clients``: which keys are set, and the command that takes them back."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Protocol

from reconciler.cli import output
from reconciler.cli.arguments import ConnectionArguments
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.ports import QuotaCluster
    from reconciler.workflows import AlterRequest, AlterTarget

_BY_HAND = ("entity_name", "entity_names", "entity_defaults", "add", "delete", "length")


class ExposingArguments(ConnectionArguments, Protocol):
    """The options that count here."""

    @property
    def expose_clients(self) -> bool:
        """``--expose-clients``."""

    @property
    def keys(self) -> tuple[str, ...]:
        """``--keys``, as typed."""

    @property
    def paths(self) -> tuple[str, ...]:
        """``PATH...``."""

    @property
    def validate_only(self) -> bool:
        """``--validate-only``."""

    @property
    def cluster(self) -> str | None:
        """``--cluster``."""


def add_exposing_options(group: argparse._ArgumentGroup) -> None:
    """``--expose-clients`` and ``--keys``."""
    group.add_argument(
        "--expose-clients",
        action="store_true",
        help="make brokers measure every client: set a default quota far above any network, where it lifts no other limit",
    )
    group.add_argument(
        "--keys",
        action="append",
        default=[],
        metavar="KEY,...",
        help="with --expose-clients, measure by these keys [default: both byte rates]",
    )


class Exposing:
    """One run with ``--expose-clients``."""

    def __init__(self, args: ExposingArguments) -> None:
        """Raise ``UsageError`` for options that contradict each other."""
        from reconciler.workflows import EXPOSED_KEYS, require_exposable

        if any(getattr(args, name) for name in _BY_HAND):
            raise UsageError(
                "--expose-clients chooses the entity and its values: without options of Entity, --add, --delete and --for"
            )
        self._args = args
        self._keys = tuple(dict.fromkeys(key for text in args.keys for key in text.split(","))) or EXPOSED_KEYS
        self._added: tuple[str, ...] = ()
        require_exposable(self._keys)

    def request(self, cluster: QuotaCluster, target: AlterTarget) -> AlterRequest:
        """Choose what to set, and print on stderr which keys are not set, and why."""
        from reconciler.workflows import exposing_request, exposure_notes

        request, exposure = exposing_request(cluster, self._keys, target)
        for note in exposure_notes(exposure):
            output.tell(f"note: {note}")
        self._added = tuple(exposure.add)
        return request

    def tell_undo(self) -> None:
        """The command that takes the values back, and why one must not forget them."""
        if not self._added or self._args.validate_only:
            return
        keys = ",".join(self._added)
        output.tell(
            f"note: while user=<default> client-id=<default> has {keys}, these keys limit no client when you set them on a "
            "client-id or on the default user. Undo this first:"
        )
        output.tell(shlex.join(["kafka-quotas", "alter", *self._connection(), "--defaults", "user,client-id", "--delete", keys]))

    def _connection(self) -> list[str]:
        args = self._args
        options = {
            "--cluster": args.cluster,
            "--bootstrap-server": args.bootstrap_server,
            "--zookeeper": args.zookeeper,
            "--command-config": args.command_config,
        }
        given = [part for name, value in options.items() if value is not None for part in (name, value)]
        return [*args.paths, *given, "--accept", "default-entity"]
