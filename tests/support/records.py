"""Every log record of a block, of every logger, at the lowest level there is."""

from __future__ import annotations

import base64
import contextlib
import logging
from collections.abc import Iterator

from reconciler.logs import event_data


class Records(logging.Handler):
    """Keeps records; the formatted text and the data are made at once, as a handler would."""

    def __init__(self) -> None:
        super().__init__(level=1)
        self.all: list[logging.LogRecord] = []
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.all.append(record)
        self._texts.append(f"{record.getMessage()} {record.args!r} {event_data(record)!r} {record.exc_text or ''}")

    def events(self, name: str, *, below: str = "reconciler") -> list[dict[str, object]]:
        """The data of the events of this name, in order."""
        mine = (record for record in self.all if record.name.startswith(below) and record.getMessage() == name)
        return [dict(event_data(record) or {}) for record in mine]

    def holds(self, secret: str) -> bool:
        """Whether any record shows a secret: as it is, as bytes are shown, or in base64."""
        raw = secret.encode()
        shapes = {secret, repr(secret)[1:-1], repr(raw)[2:-1], raw.hex(), base64.b64encode(raw).decode()}
        return any(shape in text for text in self._texts for shape in shapes)


@contextlib.contextmanager
def recorded() -> Iterator[Records]:
    """Whatever is logged inside, by anybody."""
    handler, root = Records(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(1)
    try:
        yield handler
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
