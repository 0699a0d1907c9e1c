"""A snapshot file in place of a cluster."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from reconciler.documents import parse_snapshot, read_snapshot
from reconciler.logs import log_event
from reconciler.model import CurrentState

_log: Final = logging.getLogger(__name__)


class SnapshotReader:
    """A ``QuotaReader`` over a file; the state records that it was read from a snapshot, and when the cluster was observed.

    With ``content`` the file is not opened, and ``path`` only names it.
    """

    def __init__(self, path: Path, *, content: bytes | None = None) -> None:
        self._path = path
        self._content = content

    def current_state(self) -> CurrentState:
        """The recorded state.

        Raises ``FileAccessError`` for an unreadable file, ``ManifestError`` for one that is not a snapshot.
        """
        state = read_snapshot(self._path) if self._content is None else parse_snapshot(self._content, self._path)
        log_event(_log, "snapshot read", file=str(self._path), entities=len(state.entities))
        return state
