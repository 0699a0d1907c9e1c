"""What became of a row of recorded traffic: the words of its status."""

from __future__ import annotations

from typing import Final

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
