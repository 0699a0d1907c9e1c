"""The same judgement by seconds as SQL of another hand, in DuckDB: bounds of each second, and each user's own limit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

THREADS = 2
JUST_OVER, JUST_UNDER = 1 + 1e-12, 1 - 1e-12
"""Within rounding of a limit nothing is decided."""
Limits = Mapping[tuple[str, str], float]
"""By user and kind."""
Row = tuple[int, str, str, int, int, int, int, float, bool]
"""Broker, kind and user; active seconds; of them certainly, probably and possibly over; the largest upper bound; and whether a
request is above ten seconds of the limit, to which a fetch would be cut."""

_BOUNDS = """
create temp table bounds as
with cells as (
  select broker, kind, "user", epoch_us(ts) // 1000000 as s, sum(amount)::bigint as x, max(amount) as largest
  from read_parquet(?) group by all
), sums as (
  select *, sum(x) over w11 as s11, sum(x) over w12 as s12, sum(x) over w13 as s13 from cells
  window w11 as (partition by broker, kind, "user" order by s range between 10 preceding and current row),
    w12 as (partition by broker, kind, "user" order by s range between 11 preceding and current row),
    w13 as (partition by broker, kind, "user" order by s range between 12 preceding and current row)
)
select broker, kind, "user", largest, s11::double / 12 as low, s11::double / 10.5 as rate,
  greatest(s13::double / 11, s12::double / 10) as high
from sums
"""


class InDuckDb:
    """Parquet in the normal form, opened: one file."""

    def __init__(self, file: Path) -> None:
        self._connection = duckdb.connect(config={"threads": THREADS, "temp_directory": str(file.parent / "duckdb")})
        self._connection.execute(_BOUNDS, [str(file)])

    def quantiles(self, share: float) -> Limits:
        """What each user's rate, on whichever broker, does not exceed in this share of its seconds: where it is hard to tell."""
        found = self._connection.execute(
            'select "user", kind, quantile_cont(rate, ?) from bounds group by all having max(rate) > 0', [share]
        )
        return {(user, kind): max(1.0, float(round(rate))) for user, kind, rate in found.fetchall()}

    def verdict(self, limits: Limits) -> list[Row]:
        """By broker, kind and user."""
        rows = [(user, kind, limit) for (user, kind), limit in limits.items()]
        users, kinds, values = (list(column) for column in zip(*rows, strict=True))
        self._connection.execute(
            'create or replace temp table limits as select unnest(?) as "user", unnest(?) as kind, unnest(?)::double as most',
            [users, kinds, values],
        )
        return self._connection.execute(f"""
        select broker, kind, "user", count(*), count(*) filter (low > most * {JUST_OVER!r}::double),
          count(*) filter (rate > most and high > most * {JUST_UNDER!r}::double),
          count(*) filter (high > most * {JUST_UNDER!r}::double), max(high), max(largest) > floor(any_value(most) * 10)
        from bounds join limits using ("user", kind) group by all order by all
        """).fetchall()

    def close(self) -> None:
        """The end."""
        self._connection.close()
