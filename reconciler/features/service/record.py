"""``kafka-quotas record``: polls the metrics pages of brokers and keeps what they show as Parquet files.

SIGTERM and SIGINT end it, SIGHUP finishes the current file at once. Pages are read in threads, files are written by the loop.
"""

from __future__ import annotations

import datetime
import functools
import json
import logging
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import reconciler
from reconciler.errors import FileAccessError, ReconcilerError, TrafficError
from reconciler.features.prometheus import ExporterTarget, exporter_targets, open_page, read_login
from reconciler.features.service.log import Log
from reconciler.features.service.polling import Poller, PollEvents, ScrapeGap
from reconciler.features.service.record_command import DAY_S, RecordArguments
from reconciler.features.service.signals import SignalRequests
from reconciler.files import append_line
from reconciler.formats import moment_to_json
from reconciler.logs import Datum
from reconciler.ports import Clock

if TYPE_CHECKING:
    from reconciler.features.prometheus import RecordedFolder, ScrapedRows

_LOOK_S: Final = 1.0
_LAST_SCRAPE_S: Final = 2.0
_RETRY_S: Final = 5.0
_MOST_GAPS_BYTES: Final = 4 << 20
_MOST_ROWS: Final = 2_000_000
"""A file has no more, and no more wait while the disk is full. A row takes 32 bytes of memory until then."""
_MOST_NOTES: Final = 10_000
"""Lines about gaps that wait while the disk is full."""
_UNKNOWN_WORDS: Final = {
    "name-only": "user and client-id are in the metric name only. kafka-quotas doctor prints rules that repair it",
    "no-broker": "no label has a broker id",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEnd:
    """How it ended. ``signal``: what ended it. ``lost``: rows that were not written at the end."""

    signal: int | None
    rows: int
    lost: int


@dataclass(slots=True)
class _UnwrittenRows:
    """Rows that are not written yet; pollers add to them."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    scrapes: list[ScrapedRows] = field(default_factory=list)
    rows: int = 0
    since: float | None = None

    def add(self, rows: ScrapedRows) -> None:
        with self.lock:
            if rows.count:
                self.scrapes.append(rows)
                self.rows += rows.count
                self.since = time.monotonic() if self.since is None else self.since

    def taken(self, count: int) -> None:
        """The first scrapes are written, or given up."""
        with self.lock:
            self.rows -= sum(scrape.count for scrape in self.scrapes[:count])
            del self.scrapes[:count]
            self.since = time.monotonic() if self.scrapes else None


def run_recorder(args: RecordArguments, log: Log, *, clock: Clock) -> RecordEnd:
    """Record until a signal or the end of the duration.

    Raises ``LockedError`` when another recorder has the folder, ``UsageError`` for a login or a file of clients that cannot be
    used, ``FileAccessError`` for a folder that cannot be made, and ``TrafficError`` when the time is over and no page was read.
    """
    from reconciler.features.prometheus import RecordedFolder
    from reconciler.traffic import require_arrow

    require_arrow()
    targets = exporter_targets(args.traffic)
    folder = RecordedFolder(args.folder)
    with SignalRequests() as requests, folder.locked(), log.with_libraries():
        recorder = _Recorder(args, targets, folder, log, clock)
        log.write(
            logging.INFO,
            "started",
            f"kafka-quotas {reconciler.__version__} reads {len(targets)} exporters every {args.interval:g} s into {args.folder}",
            {"version": reconciler.__version__, "exporters": len(targets), "folder": str(args.folder)},
        )
        recorder.start()
        end_at = clock.monotonic() + args.duration if args.duration else None
        while not requests.stop_wanted() and (end_at is None or clock.monotonic() < end_at):
            left = _LOOK_S if end_at is None else min(_LOOK_S, max(0.0, end_at - clock.monotonic()))
            requests.wait(left)
            recorder.look(flush=requests.take_reread())
        end = recorder.finish(requests.stopped_by)
    if requests.stopped_by is None and not recorder.scrapes:
        raise TrafficError(f"No page was read in {args.duration:g} s. {recorder.last_reason}".rstrip())
    return end


class _Recorder:
    def __init__(
        self, args: RecordArguments, targets: Sequence[ExporterTarget], folder: RecordedFolder, log: Log, clock: Clock
    ) -> None:
        from reconciler.features.prometheus import PageColumns, Retention

        self._args, self._targets, self._folder, self._log, self._clock = args, targets, folder, log, clock
        self._waiting = _UnwrittenRows()
        self._retention = Retention(keep_s=args.keep * DAY_S, most_bytes=args.max_size)
        self._written = 0
        self._dropped = 0
        self._retry_at = 0.0
        self._disk_problem: str | None = None
        self._skipped: dict[int, int] = {}
        self._unknown: dict[tuple[int, str], int] = {}
        self._foreign: set[int] = set()
        """Brokers whose pages are those of another program, once the log names it."""
        self._notes: list[str] = []
        self.last_reason = ""
        login = read_login(args.http_config) if args.http_config else None
        self._pollers = {
            target.broker: Poller(
                page=open_page(target.address, target.broker, login=login),
                columns=PageColumns(),
                interval_s=args.interval,
                offset_s=args.interval * number / len(targets),
                on=PollEvents(
                    rows=self._waiting.add,
                    begin=functools.partial(self._gap_begins, target),
                    gap=functools.partial(self._gap_ends, target),
                ),
            )
            for number, target in enumerate(targets)
        }

    @property
    def scrapes(self) -> int:
        """Pages read so far."""
        return sum(poller.counts.scrapes for poller in self._pollers.values())

    def start(self) -> None:
        self._note_pause()
        for poller in self._pollers.values():
            poller.start()

    def look(self, *, flush: bool) -> None:
        """Write what is due. Raises ``RuntimeError`` for a poller that a defect has ended."""
        for poller in self._pollers.values():
            if poller.is_broken:
                raise RuntimeError(f"the thread that reads {poller.page.address} has ended")
        waiting, now = self._waiting, self._clock.monotonic()
        full = waiting.rows >= _MOST_ROWS
        due = waiting.since is not None and now - waiting.since >= self._args.file_seconds
        if flush or (now >= self._retry_at and (full or due)):
            self._write(may_drop=full)

    def finish(self, stopped_by: int | None) -> RecordEnd:
        """Stop the pollers and write the rest."""
        for poller in self._pollers.values():
            poller.stop()
        deadline = self._clock.monotonic() + _LAST_SCRAPE_S
        for poller in self._pollers.values():
            poller.join(max(0.0, deadline - self._clock.monotonic()))
        self._write(may_drop=True)
        by = signal.Signals(stopped_by).name if stopped_by is not None else "the end of --duration"
        lost = f", and dropped {self._dropped:,} rows" if self._dropped else ""
        self._log.write(
            logging.INFO,
            "stopped",
            f"stopped by {by} after {self.scrapes:,} pages and {self._written:,} rows{lost}",
            {
                "signal": stopped_by,
                "pages": self.scrapes,
                "rows": self._written,
                "dropped": self._dropped,
                "unattributed": sum(self._unknown.values()),
            },
        )
        return RecordEnd(signal=stopped_by, rows=self._written, lost=self._dropped)

    def _write(self, *, may_drop: bool) -> None:
        with self._waiting.lock:
            scrapes, rows = tuple(self._waiting.scrapes), self._waiting.rows
        self._note_slow_pages()
        self._note_unknown()
        self._write_notes()
        if not scrapes:
            return
        try:
            path = self._folder.write(scrapes)
        except FileAccessError as error:
            self._cannot_write(error, scrapes, may_drop=may_drop)
        else:
            self._waiting.taken(len(scrapes))
            self._written += rows
            if self._disk_problem is not None:
                self._disk_problem = None
                self._log.write(logging.INFO, "disk", "the folder can be written again", {"dropped": self._dropped})
            brokers = sorted({scrape.clients[0].broker for scrape in scrapes})
            self._log.write(
                logging.INFO,
                "file",
                f"{path.name}: {rows:,} rows of {len(brokers)} brokers, {path.stat().st_size:,} bytes",
                {"file": path.name, "rows": rows, "brokers": brokers},
            )
        self._remove_old()

    def _cannot_write(self, error: FileAccessError, scrapes: tuple[ScrapedRows, ...], *, may_drop: bool) -> None:
        """Keep the rows while there is room for them, then drop them all and count."""
        self._retry_at = self._clock.monotonic() + _RETRY_S
        dropped = 0
        if may_drop:
            dropped = sum(scrape.count for scrape in scrapes)
            self._dropped += dropped
            self._waiting.taken(len(scrapes))
            self._note_dropped(scrapes, str(error))
        if self._disk_problem is None or dropped:
            self._disk_problem = str(error)
            what = f"dropped {dropped:,} rows" if dropped else "rows wait in memory"
            self._log.write(logging.ERROR, "disk", f"{error}; {what}", {"dropped": dropped})

    def _remove_old(self) -> None:
        try:
            removed = self._folder.remove_old(self._retention, now=self._clock.now())
        except FileAccessError as error:
            self._log.write(logging.WARNING, "retention", str(error))
            return
        if removed:
            names = [path.name for path in removed]
            self._log.write(logging.INFO, "retention", f"removed {len(names)} old files, first {names[0]}", {"files": names})

    def _note_slow_pages(self) -> None:
        for broker, poller in self._pollers.items():
            count = poller.counts.skipped - self._skipped.get(broker, 0)
            self._skipped[broker] = poller.counts.skipped
            if count:
                self._log.write(
                    logging.WARNING,
                    "slow",
                    f"broker {broker}: {count:,} scrapes skipped, since the page takes longer than the interval",
                    {"broker": broker, "skipped": count},
                )

    def _gap_begins(self, target: ExporterTarget, reason: str) -> None:
        self.last_reason = f"broker {target.broker}: {reason}"
        self._log.write(logging.WARNING, "gap", f"broker {target.broker}: {reason}", {"broker": target.broker, "ended": False})

    def _gap_ends(self, target: ExporterTarget, gap: ScrapeGap) -> None:
        row: dict[str, Datum] = {
            "broker": target.broker,
            "address": target.address,
            "from": _moment(gap.from_s),
            "until": _moment(gap.until_s),
            "missed": gap.missed,
            "reason": gap.reason,
        }
        message = f"broker {target.broker}: no samples from {row['from']} to {row['until']}, {gap.missed:,} scrapes missed"
        self._log.write(logging.WARNING, "gap", message, {"ended": True, **row})
        self._note(row)

    def _note_pause(self) -> None:
        """The time since the last sample of an earlier run was not observed."""
        last_s, now_s = self._folder.last_moment_s(), self._clock.now().timestamp()
        if last_s is None or now_s - last_s <= 2 * self._args.interval:
            return
        missed = int((now_s - last_s) / self._args.interval)
        for target in self._targets:
            self._gap_ends(target, ScrapeGap(from_s=last_s, until_s=now_s, missed=missed, reason="record was not running"))

    def _note_dropped(self, scrapes: tuple[ScrapedRows, ...], reason: str) -> None:
        """Note rows that were read and lost as a gap of their broker."""
        times: dict[int, list[float]] = {}
        for scrape in scrapes:
            times.setdefault(scrape.clients[0].broker, []).append(scrape.at_us / 1e6)
        for broker, some in sorted(times.items()):
            row: dict[str, Datum] = {
                "broker": broker,
                "from": _moment(min(some) - self._args.interval),
                "until": _moment(max(some)),
                "missed": len(some),
                "reason": reason,
            }
            self._note(row)

    def _note_unknown(self) -> None:
        """Name the first series of each reason whose client is not known. Later ones are counted."""
        from reconciler.features.prometheus import foreign_page, series_text

        for broker, poller in self._pollers.items():
            foreign = foreign_page(poller.page.address, poller.others)
            if foreign is not None and broker not in self._foreign:
                self._log.write(logging.WARNING, "foreign", f"broker {broker}: {foreign}", {"broker": broker})
                self._foreign.add(broker)
            for reason, unknown in poller.columns.unattributed.items():
                place = broker, reason.value
                if place not in self._unknown:
                    self._log.write(
                        logging.WARNING,
                        "unattributed",
                        f"broker {broker}: the clients of {unknown.count:,} series are not known and are not recorded, such as "
                        f"{series_text(unknown.example)}: {_UNKNOWN_WORDS[reason.value]}",
                        {"broker": broker, "reason": reason.value, "series": unknown.count},
                    )
                self._unknown[place] = unknown.count

    def _note(self, row: Mapping[str, Datum]) -> None:
        """Add a line to the file of gaps. Lines wait while the disk is full. Pollers call this too."""
        with self._waiting.lock:
            if len(self._notes) < _MOST_NOTES:
                self._notes.append(json.dumps(dict(row)))
        self._write_notes()

    def _write_notes(self) -> None:
        with self._waiting.lock:
            notes, self._notes = self._notes, []
        path = self._folder.gaps_file
        try:
            if notes and path.exists() and path.stat().st_size > _MOST_GAPS_BYTES:
                self._folder.begin_new_gaps()
            while notes:
                append_line(path, notes[0])
                del notes[0]
        except (OSError, ReconcilerError) as error:
            with self._waiting.lock:
                self._notes[:0] = notes
            self._log.write(logging.WARNING, "gap", f"{path.name} cannot be written: {error}")


def _moment(seconds: float) -> str:
    return moment_to_json(datetime.datetime.fromtimestamp(seconds, datetime.UTC))
