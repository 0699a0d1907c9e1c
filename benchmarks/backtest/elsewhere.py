"""The same judgement by seconds in engines made for one machine: DuckDB in SQL, Polars by whole columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.backtest.answers import AFTER, BEFORE, JUST_OVER, JUST_UNDER, Row

if TYPE_CHECKING:
    import polars as pl

THREADS = 2


def duckdb_verdict(folder: Path) -> list[Row]:
    """With bounded frames, which it does faster than growing ones."""
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS, "memory_limit": "12GB", "temp_directory": str(folder / "duckdb")})
    connection.execute(f"""
    create temp table cells as
    select broker, kind, "user", client_id, epoch_us(ts) // 1000000 as s, sum(amount)::bigint as x
    from read_parquet('{folder}/rows/*.parquet') where semantics = 'event' and amount >= 0 group by all
    """)
    window = 'partition by broker, kind, "user", client_id order by s range between {} preceding and current row'
    sums = ", ".join(f"sum(x) over ({window.format(n - 1)})::double as s{n}" for n in (11, 12, 13))
    upper = "greatest(s13 / 11, s12 / 10)"
    certain = {limit: f"count(*) filter (s11 / 12 > {limit * JUST_OVER!r}::double)" for limit in (BEFORE, AFTER)}
    possible = {limit: f"{upper} > {limit * JUST_UNDER!r}::double" for limit in (BEFORE, AFTER)}
    over = {
        limit: f"greatest(count(*) filter (s11 / 10.5 > {limit}::double and {possible[limit]}), {certain[limit]})"
        for limit in (BEFORE, AFTER)
    }
    return connection.execute(f"""
    select broker, kind, "user", client_id, count(*), {certain[AFTER]}, {over[AFTER]}, count(*) filter ({possible[AFTER]}),
      {over[BEFORE]}, max({upper})
    from (select *, {sums} from cells) group by all
    """).fetchall()


def polars_verdict(folder: Path) -> list[Row]:
    """With columns shifted against themselves: a second's last twelve ones are among its last twelve rows."""
    import polars as pl

    names = ["broker", "kind", "user", "client_id"]
    rows = pl.scan_parquet(folder / "rows" / "*.parquet").filter((pl.col("semantics") == "event") & (pl.col("amount") >= 0))
    second = (pl.col("ts").dt.epoch("us") // 1_000_000).alias("s")
    cells = rows.group_by(*names, second).agg(pl.col("amount").sum().alias("x")).collect(engine="streaming")
    numbered = cells.with_columns((pl.struct(names).rank("dense").cast(pl.Int64) * 2**33 + pl.col("s")).alias("key"))
    ordered = numbered.sort("key")
    sums = ordered.lazy().with_columns(*(_sum(length).alias(f"s{length}") for length in (11, 12, 13)))
    upper = pl.max_horizontal(pl.col("s13") / 11, pl.col("s12") / 10)
    certain = {limit: pl.col("s11") / 12 > limit * JUST_OVER for limit in (BEFORE, AFTER)}
    over = {limit: (pl.col("s11") / 10.5 > limit) & (upper > limit * JUST_UNDER) for limit in (BEFORE, AFTER)}
    judged = sums.group_by(names).agg(
        pl.len(),
        certain[AFTER].sum().alias("certain"),
        pl.max_horizontal(over[AFTER].sum(), certain[AFTER].sum()).alias("over"),
        (upper > AFTER * JUST_UNDER).sum().alias("possible"),
        pl.max_horizontal(over[BEFORE].sum(), certain[BEFORE].sum()).alias("before"),
        upper.max().alias("peak"),
    )
    return judged.collect().rows()


def _sum(length: int) -> pl.Expr:
    import polars as pl

    key, x = pl.col("key"), pl.col("x")
    parts = (pl.when(key - key.shift(back) < length).then(x.shift(back)).otherwise(0) for back in range(1, length))
    return pl.sum_horizontal(x, *parts)
