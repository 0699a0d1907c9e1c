"""How wide the terminal is. ``shutil`` knows this too, but loads compression libraries for it, a tenth of the time of a help."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Final, TextIO

WITHOUT_TERMINAL: Final = 80


def columns(environ: Mapping[str, str] | None = None, stream: TextIO | None = None) -> int:
    """Columns of the terminal that stdout (or ``stream``) is: ``COLUMNS`` where it is set, and 80 where there is no terminal."""
    wanted = (os.environ if environ is None else environ).get("COLUMNS", "")
    if wanted.isascii() and wanted.isdigit() and int(wanted[:6]):
        return int(wanted[:6])
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size((stream or sys.__stdout__).fileno()).columns or WITHOUT_TERMINAL  # type: ignore[union-attr]
    return WITHOUT_TERMINAL
