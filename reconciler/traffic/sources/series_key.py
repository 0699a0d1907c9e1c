"""One number for a client's requests of one kind on one broker, the same in every file and run.

The upper half comes from the user alone, so that what is sorted by it holds a user's series together. Whoever builds a table from
these numbers must check that no two clients have one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column

IDENTITY: Final = ("broker", "kind", "user", "client_id")
_HALF: Final = 32


def series_key() -> Column:
    """A long, of the columns ``IDENTITY``; a name that is not known is null."""
    from pyspark.sql import functions as F

    rest = F.xxhash64("broker", "kind", "client_id").bitwiseAND(F.lit((1 << _HALF) - 1).cast("long"))
    return F.shiftleft(F.hash("user").cast("long"), _HALF).bitwiseOR(rest)
