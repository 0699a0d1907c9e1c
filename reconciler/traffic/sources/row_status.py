"""What became of a row of recorded traffic, and how many rows may be unreadable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.errors import TrafficError
from reconciler.model import escaped

IDENTITY_COLUMNS: Final = ("connection", "correlation_id", "recorded_throttle_ms")
"""What tells requests apart; it makes rows large."""

CHARGED: Final = "charged"
EMPTY_THROTTLED: Final = "empty-throttled"
"""A fetch that the broker throttled and answered empty: what it would have carried is not in the log."""
FOLLOWER: Final = "follower"
REFUSED: Final = "refused-transaction"
"""A transactional produce refused as a whole (error 53 everywhere) is not charged."""
UNSIZED: Final = "share-fetch"
"""Of a share group: charged as a fetch, but the log does not give its size."""
EXEMPT: Final = "exempt"
"""Its time is charged to nobody."""
OTHER_API: Final = "other-api"
UNCLEAR_TIME: Final = "unclear-time"
"""Its local time is there twice, or never, because the clocks were changed: it could be an hour off."""
DUPLICATE: Final = "duplicate"
"""Another line of the same connection, number and time is counted: a log was copied, or is given under two names."""
UNREADABLE: Final = "unreadable"
FIRST_US: Final = 946_684_800_000_000
END_US: Final = 4_102_444_800_000_000
"""The years 2000 to 2099, as microseconds since 1970: any other time comes from a damaged row or a wrong unit."""
MOST_AMOUNT: Final = 2**42
"""Of one row: 4 TiB, or 73 minutes of a thread. Two million such rows can be added up in 64 bits."""
DEFAULT_MOST: Final = 0.01
"""One row in a hundred: what a few lines cut by rotation or a full disk never reach, and a wrong layout always does."""


def require_readable(unreadable: int, rows: int, most: float, *, files: Sequence[str], samples: Sequence[str] = ()) -> None:
    """Raise ``TrafficError`` when more than the share ``most`` of ``rows`` is ``unreadable``."""
    if not rows or unreadable <= most * rows:
        return
    where = escaped(files[0]) + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    shown = "".join(f"\n  {escaped(sample)}" for sample in samples)
    raise TrafficError(
        f"recorded traffic {where}: {unreadable} of {rows} rows cannot be read ({unreadable / rows:.1%}), and --max-unreadable "
        f"allows {most:.4g}{', for instance' if samples else ''}{':' if samples else ''}{shown}"
    )
