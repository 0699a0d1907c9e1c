"""Which sources a run reads and which days it writes, from what the dataset has."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.seconds.day_ledger import (
    STREAM,
    TABLE,
    WHOLE,
    DayPart,
    DayRange,
    LakeDay,
    LakeLedger,
    LakeSource,
    SourceShare,
    expired_days,
    plan_days,
    plan_files,
)

ALL = DayRange()
DAYS = ("2026-11-20", "2026-11-21", "2026-11-22")


def share(source: LakeSource, requests: int, days: tuple[str, ...]) -> SourceShare:
    return SourceShare(source=source, statuses={"charged": requests}, days=days)


def ledger_of(shares: Mapping[str, tuple[SourceShare, ...]]) -> LakeLedger:
    days = {
        date: LakeDay(date=date, rows=1, requests=1, late=0, written="", program="", shares=of_day)
        for date, of_day in shares.items()
    }
    return LakeLedger(sequence=1, days=days)


def run(ledger: LakeLedger, given_now: Mapping[LakeSource, Mapping[str, int]]) -> LakeLedger:
    """The ledger after a run over these sources, each with its requests by day."""
    files = plan_files(ledger, [*given_now], ALL, anew=False)
    read: dict[str, list[SourceShare]] = {}
    for source in files.read:
        for date, requests in given_now[source].items():
            read.setdefault(date, []).append(share(source, requests, tuple(sorted(given_now[source]))))
    plan = plan_days(ledger, files, read, ALL)
    shares = {date: day.shares for date, day in ledger.days.items()}
    return ledger_of(shares | {write.date: write.shares for write in plan.writes})


def counted(ledger: LakeLedger) -> dict[tuple[str, str], int]:
    return {(date, s.source.id): s.statuses["charged"] for date, day in ledger.days.items() for s in day.shares}


SIZES = st.dictionaries(st.sampled_from(DAYS), st.integers(1, 9), min_size=1)
RUNS = st.lists(st.dictionaries(st.sampled_from("abc"), SIZES, min_size=1), min_size=1, max_size=5)


@given(RUNS)
def test_after_any_runs_one_over_all_sources_has_what_one_run_has(runs: list[dict[str, dict[str, int]]]) -> None:
    """Logs that grow, in any order and number of runs: in the end every source counts once, as it is now."""
    ledger = LakeLedger()
    state: dict[str, dict[str, int]] = {}
    for grown in runs:
        for name, days in grown.items():
            known = state.setdefault(name, {})
            for date, more in days.items():
                known[date] = known.get(date, 0) + more
        some = {LakeSource(id=name, name=name, size=sum(state[name].values())): state[name] for name in grown}
        ledger = run(ledger, some)
    everything = {LakeSource(id=name, name=name, size=sum(days.values())): days for name, days in state.items()}
    ledger = run(ledger, everything)
    assert counted(ledger) == {(date, name): n for name, days in state.items() for date, n in days.items()}
    assert run(ledger, everything) == ledger


def test_a_stream_adds_to_its_days_batch_by_batch() -> None:
    ledger = LakeLedger()
    for batch in range(3):
        ledger = run(ledger, {LakeSource(id="s", name="kafka://b/t", size=batch, kind=STREAM): {DAYS[0]: 5, DAYS[1]: batch + 1}})
    assert counted(ledger) == {(DAYS[0], "s"): 15, (DAYS[1], "s"): 6}


def test_a_log_that_grows_beside_a_stream_cannot_make_its_day_anew() -> None:
    log = LakeSource(id="a", name="a.log", size=1)
    ledger = run(LakeLedger(), {log: {DAYS[0]: 1}})
    ledger = run(ledger, {LakeSource(id="s", name="kafka://b/t", size=0, kind=STREAM): {DAYS[0]: 5}})
    grown = LakeSource(id="a", name="a.log", size=2)
    files = plan_files(ledger, [grown], ALL, anew=False)
    assert files.blocked == {("a", DAYS[0]): ("kafka://b/t",)}
    plan = plan_days(ledger, files, {DAYS[0]: [share(grown, 3, (DAYS[0],))]}, ALL)
    assert (plan.writes, [(late.requests, late.missing) for late in plan.late]) == ((), [(2, ("kafka://b/t",))])


def test_a_day_of_a_table_is_written_again_when_it_has_other_rows() -> None:
    def of_table(rows: int) -> SourceShare:
        return share(LakeSource(id=f"t-{DAYS[0]}", name="table:t", size=rows, kind=TABLE), rows, (DAYS[0],))

    table = LakeSource(id="t", name="table:t", size=0, kind=TABLE)
    ledger = ledger_of({DAYS[0]: (of_table(4),)})
    files = plan_files(ledger, [table], ALL, anew=False)
    assert plan_days(ledger, files, {DAYS[0]: [of_table(4)]}, ALL).writes == ()
    (write,) = plan_days(ledger, files, {DAYS[0]: [of_table(5)]}, ALL).writes
    assert (write.add, [s.source.size for s in write.shares]) == (False, [5])


def test_a_new_file_of_a_day_that_lost_one_stays_out() -> None:
    earlier = share(LakeSource(id="a", name="/d/a.parquet", size=1, kind=WHOLE), 1, (DAYS[0],))
    new = LakeSource(id="b", name="/d/b.parquet", size=1, kind=WHOLE)
    ledger = ledger_of({DAYS[0]: (earlier,)})
    files = plan_files(ledger, [new], ALL, anew=False)
    read = {DAYS[0]: [share(new, 7, (DAYS[0],))]}
    plan = plan_days(ledger, files, read, ALL, gone=("/d/a.parquet",))
    assert (plan.writes, plan.late[0].missing) == ((), ("/d/a.parquet",))
    assert plan_days(ledger, files, read, ALL).writes[0].add


def test_old_days_are_those_before_the_oldest() -> None:
    ledger = ledger_of(dict.fromkeys(DAYS, ()))
    assert expired_days(ledger, "2026-11-22") == DAYS[:2]
    assert expired_days(ledger, "") == ()


def day_of_parts(*sizes: int) -> LakeDay:
    """Each part is of a log of its own."""
    parts = [
        DayPart(
            folder=f"date={DAYS[0]}/run={number}",
            rows=rows,
            requests=rows,
            shares=(share(LakeSource(id=f"{number}", name=f"{number}.log", size=1), rows, (DAYS[0],)),),
        )
        for number, rows in enumerate(sizes)
    ]
    return LakeDay.of_parts(DAYS[0], parts, late=0, written="", program="")


def test_a_batch_adds_a_part_and_takes_in_those_of_a_full_tier() -> None:
    log = LakeSource(id="new", name="new.log", size=1)
    read = {DAYS[0]: [share(log, 7, (DAYS[0],))]}
    for sizes, kept in (((5, 70), 2), ((5, 70, 5, 5, 5, 5, 5, 5), 1)):
        day = day_of_parts(*sizes)
        ledger = LakeLedger(sequence=1, days={DAYS[0]: day})
        files = plan_files(ledger, [log], ALL, anew=False)
        (write,) = plan_days(ledger, files, read, ALL, totals={DAYS[0]: 7}).writes
        assert (len(write.kept), len(write.merged(day)), write.add) == (kept, len(sizes) - kept, True)
        assert {s.source.id for s in write.shares} == {"new", *(s.source.id for part in write.merged(day) for s in part.shares)}


def test_a_run_without_totals_takes_in_every_part() -> None:
    log = LakeSource(id="new", name="new.log", size=1)
    day = day_of_parts(5, 70)
    ledger = LakeLedger(sequence=1, days={DAYS[0]: day})
    files = plan_files(ledger, [log], ALL, anew=False)
    read = {DAYS[0]: [share(log, 7, (DAYS[0],))]}
    (write,) = plan_days(ledger, files, read, ALL).writes
    assert (write.kept, write.merged(day), len(write.shares)) == ((), day.parts, 3)
    (write,) = plan_days(ledger, files, read, ALL, anew=True, totals={DAYS[0]: 7}).writes
    assert (write.kept, write.merged(day), write.add) == ((), (), False)


def test_a_stream_has_one_share_of_a_day_of_several_parts() -> None:
    stream = LakeSource(id="s", name="kafka://b/t", size=0, kind=STREAM)
    parts = [DayPart(folder=f"f{n}", rows=1, requests=n, shares=(share(stream, n, (DAYS[0],)),)) for n in (2, 3)]
    day = LakeDay.of_parts(DAYS[0], parts, late=0, written="", program="")
    assert [(s.source.id, s.statuses) for s in day.shares] == [("s", {"charged": 5})]
    assert (day.rows, day.requests) == (2, 5)
