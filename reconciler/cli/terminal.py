"""The width of the terminal, without ``shutil``, which loads compression libraries: a tenth of the time of ``--help``."""

from __future__ import annotations

import contextlib
import os
from typing import Final, TextIO

WITHOUT_SIZE: Final = 80
"""Columns of a terminal that does not report how wide it is."""


def columns(stream: TextIO) -> int | None:
    """``COLUMNS`` where it is set, else the columns of the terminal that ``stream`` is; ``None`` when it is none."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isascii() and wanted.isdigit() and int(wanted[:6]):
        return int(wanted[:6])
    if not stream.isatty():
        return None
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(stream.fileno()).columns or WITHOUT_SIZE
    return WITHOUT_SIZE
