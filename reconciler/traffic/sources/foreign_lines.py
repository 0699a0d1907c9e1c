"""What lines with requests are that cannot be read as those of a broker's own request log, and what serves in their place."""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from reconciler.traffic.sources.line_time import LineClock
from reconciler.traffic.sources.log_documents import MARKER

_PARTIAL: Final = re.compile(rb"\S+ (?:stdout|stderr) P ")
_DATED: Final = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}")
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ForeignForm(NamedTuple):
    """Two sentences without their end marks."""

    what: str
    serves: str


_BEFORE_2_8: Final = (
    "Kafka writes requests as JSON, which shows their sizes, since version 2.8. For older brokers give their metrics "
    "(docs/metrics.md), or the violation log (docs/get-a-history.md)"
)
_TEXT_OF_2_0: Final = ForeignForm("These are requests in the text form of brokers from 2.0 to 2.7", _BEFORE_2_8)
_TEXT_BEFORE_2_0: Final = ForeignForm("These are requests in the text form of brokers before 2.0", _BEFORE_2_8)
_DOCKER: Final = ForeignForm(
    "These are files of Docker's json-file driver, which has each line of the broker as text in the field 'log'",
    "Unpack them with jq -rj .log FILE > kafka-request.log, and give what it writes",
)
_PARTS: Final = ForeignForm(
    "These are lines of a container runtime (CRI), which cuts a longer line of the broker into parts with the flag P",
    "Let the broker write its request log to a file of its own (docs/request-log.md)",
)
_NO_TIME: Final = ForeignForm(
    f"No date and time is before '{MARKER.decode()}'",
    "Let the layout of the logger begin with a time, such as [%d] %p %m (%c)%n (docs/request-log.md)",
)
_CUT: Final = ForeignForm(
    "The JSON of these lines ends too early, as when something on their way limits the length of a line",
    "Give the file that the broker itself writes (docs/request-log.md)",
)


def foreign_form(raw: bytes, zone: str) -> ForeignForm | None:
    """What a line with the marker is, if a reader of request logs cannot read it; ``None``: not known.

    ``zone``: that of times without an offset.
    """
    at = raw.find(MARKER)
    behind = raw[at + len(MARKER) :]
    known = (
        (behind.startswith(b"RequestHeader("), _TEXT_OF_2_0),
        (behind.startswith((b"{api_key=", b"Name:")), _TEXT_BEFORE_2_0),
        (raw.startswith(b'{"log":'), _DOCKER),
        (_PARTIAL.match(raw) is not None, _PARTS),
    )
    form = next((form for holds, form in known if holds), None)
    if form is not None:
        return form
    if raw.lstrip().startswith(b"{"):
        return _wrapped(raw)
    if not behind.startswith(b"{"):
        return None
    return _NO_TIME if LineClock(zone).read(raw, at) is None else _CUT if _ends_early(behind) else None


def _wrapped(raw: bytes) -> ForeignForm | None:
    """Of a JSON document that has the line of the broker in one of its fields."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    texts = {key: value for key, value in document.items() if isinstance(value, str)}
    field = next((key for key, value in texts.items() if MARKER.decode() in value), None)
    if field is None:
        return None
    what = f"Each of these lines is a JSON document, which has the line of the broker as text in the field {field!r}"
    time = next((key for key, value in texts.items() if key != field and _DATED.match(value)), None)
    if time is None:
        return ForeignForm(f"{what}, and no field has its date and time", _NO_TIME.serves)
    return ForeignForm(what, f"""Unpack them with jq -r '"\\({_path(time)}) \\({_path(field)})"' FILE > kafka-request.log""")


def _path(key: str) -> str:
    """As jq has it."""
    return f".{key}" if _KEY.fullmatch(key) else f".[{json.dumps(key)}]"


def _ends_early(behind: bytes) -> bool:
    text = behind.decode("utf-8", "replace").rstrip()
    try:
        json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        # A text that is open, or a place where more has to follow.
        return error.msg.startswith("Unterminated") or error.pos >= len(text)
    except RecursionError:
        return False
    return False
