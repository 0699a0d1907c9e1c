"""``alter --expose-clients``: which keys are set, and the command that takes them back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.cli import output

if TYPE_CHECKING:
    from reconciler.cli.option_groups import ConnectionOptions
    from reconciler.ports import QuotaCluster
    from reconciler.workflows import AlterRequest, AlterTarget


class Exposing:
    """One run with ``--expose-clients``."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raise ``UsageError`` for ``keys``, those of ``--keys`` as typed, that make no client visible."""
        from reconciler.workflows import EXPOSED_KEYS, require_exposable

        self._keys = tuple(dict.fromkeys(key for text in keys for key in text.split(","))) or EXPOSED_KEYS
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

    def undo_notes(self, paths: Sequence[str], connection: ConnectionOptions) -> Sequence[str]:
        """The command that takes the values back, and why one must not forget them."""
        if not self._added:
            return ()
        keys = ",".join(self._added)
        options = {
            "--cluster": connection.cluster,
            "--bootstrap-server": connection.bootstrap_server,
            "--zookeeper": connection.zookeeper,
            "--command-config": connection.command_config,
        }
        given = [part for name, value in options.items() if value is not None for part in (name, value)]
        undo = ("--accept", "default-entity", "--defaults", "user,client-id", "--delete", keys)
        warning = (
            f"note: while user=<default> client-id=<default> has {keys}, these keys limit no client when you set them on a "
            "client-id or on the default user. Undo this first:"
        )
        return warning, shlex.join(["kafka-quotas", "alter", *paths, *given, *undo])
