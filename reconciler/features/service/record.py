"""``kafka-quotas record``: polls the metrics pages of brokers and keeps what they show as Parquet files.

SIGTERM and SIGINT end it, SIGHUP finishes the current file at once. Each page is read in a thread of its own, and files are
written by the main thread.
"""

from __future__ import annotations

import datetime
import json
import logging
import math
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import reconciler
from reconciler.cli import exit_codes
from reconciler.errors import FileAccessError, ReconcilerError, TrafficError
from reconciler.features.prometheus import ExporterPage, ExporterTarget, exporter_targets, read_login
from reconciler.features.service.log import Log
from reconciler.features.service.record_command import DAY_S, RecordArguments
from reconciler.features.service.signals import SignalRequests
from reconciler.files import append_line
from reconciler.formats import moment_to_json
from reconciler.logs import Datum

if TYPE_CHECKING:
    from reconciler.features.prometheus import PageColumns, RecordedFolder, ScrapedRows

_LOOK_S: Final = 1.0
_LAST_SCRAPE_S: Final = 2.0
_RETRY_S: Final = 5.0
_MOST_GAPS_BYTES: Final = 4 << 20
_MOST_ROWS: Final = 2_000_000
"""A file has no more, and no more wait while the disk is full. A row takes 40 bytes of memory until then."""
_MOST_NOTES: Final = 10_000
"""Lines about gaps that wait while the disk is full."""
_UNKNOWN_WORDS: Final = {
    "name-only": "user and client-id are in the metric name only. kafka-quotas doctor prints rules that repair it",
    "no-broker": "no label has a broker id",
}


@dataclass(slots=True, kw_only=True)
class _Exporter:
    """The page of one broker, and how reading it went. Its thread writes this."""

    target: ExporterTarget
    page: ExporterPage
    columns: PageColumns
    pages: int = 0
    others: tuple[str, ...] = ()
    """Of the last page, where it has no metric of quotas: the names of other metrics."""
    good_s: float | None = None
    """When the last page was read, in seconds since 1970."""
    gap: tuple[float, str] | None = None
    """Since when the page cannot be read, and why."""


def run_recorder(args: RecordArguments, log: Log) -> int:
    """Record until a signal or the end of the duration, and return the exit code.

    Raises ``LockedError`` when another recorder has the folder, ``UsageError`` for a login that cannot be used,
    ``FileAccessError`` for a folder that cannot be made, and ``TrafficError`` when the time is over and no page was read.
    """
    from reconciler.features.prometheus import RecordedFolder
    from reconciler.traffic import require_arrow

    require_arrow()
    targets = exporter_targets(args.traffic)
    folder = RecordedFolder(args.folder)
    with SignalRequests() as requests, folder.locked(), log.with_libraries():
        recorder = _Recorder(args, targets, folder, log)
        log.write(
            logging.INFO,
            "started",
            f"kafka-quotas {reconciler.__version__} reads {len(targets)} exporters every {args.interval:g} s into {args.folder}",
            {"version": reconciler.__version__, "exporters": len(targets), "folder": str(args.folder)},
        )
        recorder.start()
        left = end_s = math.inf if args.duration is None else args.duration
        end_s += time.monotonic()
        while not requests.stop_wanted() and left > 0:
            requests.wait(min(_LOOK_S, left))
            recorder.look(flush=requests.take_reread())
            left = end_s - time.monotonic()
        return recorder.finish(requests.stopped_by)


class _Recorder:
    def __init__(self, args: RecordArguments, targets: Sequence[ExporterTarget], folder: RecordedFolder, log: Log) -> None:
        from reconciler.features.prometheus import PageColumns

        self._args, self._folder, self._log = args, folder, log
        login = read_login(args.http_config) if args.http_config else None
        self._exporters = [
            _Exporter(target=target, page=ExporterPage(target.address, target.broker, login=login), columns=PageColumns())
            for target in targets
        ]
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()
        self._defect: Exception | None = None
        self._lock = threading.Lock()
        """Of the scrapes and the notes, which threads add to."""
        self._scrapes: list[ScrapedRows] = []
        self._notes: list[str] = []
        self._written_s = time.monotonic()
        self._written = self._dropped = 0
        self._retry_s = 0.0
        self._disk_problem: str | None = None
        self._unknown: dict[tuple[int, str], int] = {}
        self._foreign: set[int] = set()
        """Brokers whose pages are those of another program, once the log names it."""

    def start(self) -> None:
        """Begin to read, one page after the other within an interval."""
        last_s, now_s = self._folder.last_moment_s(), time.time()
        for number, exporter in enumerate(self._exporters):
            if last_s is not None and now_s - last_s > 2 * self._args.interval:
                self._note_gap(exporter.target, last_s, now_s, "record was not running")
            offset_s = self._args.interval * number / len(self._exporters)
            thread = threading.Thread(target=self._poll, args=(exporter, offset_s), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _poll(self, exporter: _Exporter, offset_s: float) -> None:
        """Read one page again and again, never with two requests at once: a slow page skips those that are due meanwhile."""
        begin, interval = time.monotonic() + offset_s, self._args.interval
        tick = 0
        try:
            while not self._stop.wait(max(0.0, begin + tick * interval - time.monotonic())):
                self._scrape(exporter)
                tick = max(tick + 1, math.ceil((time.monotonic() - begin) / interval))
        except Exception as defect:  # noqa: BLE001 - the main thread raises it
            self._defect = defect

    def _scrape(self, exporter: _Exporter) -> None:
        begun = time.monotonic()
        try:
            read = exporter.page.read()
        except ReconcilerError as error:
            if exporter.gap is None and not self._stop.is_set():
                exporter.gap = (time.time() if exporter.good_s is None else exporter.good_s, str(error))
                broker = exporter.target.broker
                self._log.write(logging.WARNING, "gap", f"broker {broker}: {error}", {"broker": broker, "ended": False})
            return
        if self._stop.is_set():
            return
        self._end_gap(exporter, read.at_s)
        exporter.pages, exporter.others, exporter.good_s = exporter.pages + 1, read.others, read.at_s
        rows = exporter.columns.rows(read.samples, at_s=read.at_s, monotonic_s=begun)
        if rows.rows.count:
            with self._lock:
                self._scrapes.append(rows)

    def look(self, *, flush: bool) -> None:
        """Write what is due. Raises a defect that ended a thread."""
        if self._defect is not None:
            raise self._defect
        now = time.monotonic()
        with self._lock:
            is_full = sum(scrape.rows.count for scrape in self._scrapes) >= _MOST_ROWS
        if flush or (now >= self._retry_s and (is_full or now - self._written_s >= self._args.file_seconds)):
            self._write(may_drop=is_full)
        if now >= self._retry_s:
            self._write_notes()

    def finish(self, stopped_by: int | None) -> int:
        """Stop to read, write the rest, and return the exit code. Raises ``TrafficError`` when no page was read at the end."""
        self._stop.set()
        deadline = time.monotonic() + _LAST_SCRAPE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        reasons = [f"broker {each.target.broker}: {each.gap[1]}" for each in self._exporters if each.gap is not None]
        for exporter in self._exporters:
            self._end_gap(exporter, time.time())
        self._write(may_drop=True)
        self._write_notes()
        by = "the end of --duration" if stopped_by is None else signal.Signals(stopped_by).name
        lost = f", and dropped {self._dropped:,} rows" if self._dropped else ""
        pages = sum(exporter.pages for exporter in self._exporters)
        self._log.write(
            logging.INFO,
            "stopped",
            f"stopped by {by} after {pages:,} pages and {self._written:,} rows{lost}",
            {
                "signal": stopped_by,
                "pages": pages,
                "rows": self._written,
                "dropped": self._dropped,
                "unattributed": sum(self._unknown.values()),
            },
        )
        if stopped_by is None and not pages:
            raise TrafficError(f"No page was read in {self._args.duration:g} s. {''.join(reasons[-1:])}".rstrip())
        if stopped_by == signal.SIGINT:
            return exit_codes.INTERRUPTED
        return exit_codes.PARTIAL if self._dropped else exit_codes.DONE

    def _write(self, *, may_drop: bool) -> None:
        """Write a file. Where the disk refuses, keep the rows while there is room for them, then drop and count them."""
        self._note_unknown()
        with self._lock:
            scrapes = self._scrapes.copy()
        if not scrapes:
            return
        rows, dropped = sum(scrape.rows.count for scrape in scrapes), 0
        try:
            path = self._folder.write(scrapes)
        except FileAccessError as error:
            self._retry_s = time.monotonic() + _RETRY_S
            dropped = rows if may_drop else 0
            if self._disk_problem is None or dropped:
                self._disk_problem = str(error)
                what = f"dropped {dropped:,} rows" if dropped else "rows wait in memory"
                self._log.write(logging.ERROR, "disk", f"{error}; {what}", {"dropped": dropped})
            if not may_drop:
                return
            self._dropped += dropped
            self._note_dropped(scrapes, str(error))
        else:
            self._written += rows
            if self._disk_problem is not None:
                self._disk_problem = None
                self._log.write(logging.INFO, "disk", "the folder can be written again", {"dropped": self._dropped})
            message = f"{path.name}: {rows:,} rows, {path.stat().st_size:,} bytes"
            self._log.write(logging.INFO, "file", message, {"file": path.name, "rows": rows})
        self._written_s = time.monotonic()
        with self._lock:
            del self._scrapes[: len(scrapes)]
        self._remove_old()

    def _remove_old(self) -> None:
        try:
            before_s = time.time() - self._args.keep * DAY_S
            removed = self._folder.remove_old(before_s=before_s, most_bytes=self._args.max_size)
        except FileAccessError as error:
            self._log.write(logging.WARNING, "retention", str(error))
            return
        if removed:
            names = [path.name for path in removed]
            self._log.write(logging.INFO, "retention", f"removed {len(names)} old files, first {names[0]}", {"files": names})

    def _end_gap(self, exporter: _Exporter, until_s: float) -> None:
        if exporter.gap is not None:
            from_s, reason = exporter.gap
            exporter.gap = None
            self._note_gap(exporter.target, from_s, until_s, reason)

    def _note_dropped(self, scrapes: Sequence[ScrapedRows], reason: str) -> None:
        """Note rows that were read and lost as a gap of their broker."""
        for exporter in self._exporters:
            broker = exporter.target.broker
            times = [int(scrape.rows.ts_us[0]) / 1e6 for scrape in scrapes if scrape.clients[0].broker == broker]
            if times:
                self._note_gap(exporter.target, min(times) - self._args.interval, max(times), reason)

    def _note_gap(self, target: ExporterTarget, from_s: float, until_s: float, reason: str) -> None:
        row: dict[str, Datum] = {
            "broker": target.broker,
            "address": target.address,
            "from": _moment(from_s),
            "until": _moment(until_s),
            "reason": reason,
        }
        message = f"broker {target.broker}: no samples from {row['from']} to {row['until']}"
        self._log.write(logging.WARNING, "gap", message, {"ended": True, **row})
        with self._lock:
            if len(self._notes) < _MOST_NOTES:
                self._notes.append(json.dumps(row))

    def _write_notes(self) -> None:
        """Add lines to the file of gaps. They wait while the disk is full."""
        path = self._folder.gaps_file
        with self._lock:
            try:
                if self._notes and path.exists() and path.stat().st_size > _MOST_GAPS_BYTES:
                    self._folder.begin_new_gaps()
                while self._notes:
                    append_line(path, self._notes[0])
                    del self._notes[0]
            except (OSError, ReconcilerError) as error:
                self._retry_s = time.monotonic() + _RETRY_S
                self._log.write(logging.WARNING, "gap", f"{path.name} cannot be written: {error}")

    def _note_unknown(self) -> None:
        """Name the first series of each reason whose client is not known. Later ones are counted."""
        from reconciler.features.prometheus import foreign_page, series_text

        for exporter in self._exporters:
            broker = exporter.target.broker
            foreign = foreign_page(exporter.page.address, exporter.others)
            if foreign is not None and broker not in self._foreign:
                self._log.write(logging.WARNING, "foreign", f"broker {broker}: {foreign}", {"broker": broker})
                self._foreign.add(broker)
            for reason, (count, example) in tuple(exporter.columns.unattributed.items()):
                if (broker, reason.value) not in self._unknown:
                    self._log.write(
                        logging.WARNING,
                        "unattributed",
                        f"broker {broker}: the clients of {count:,} series are not known and are not recorded, such as "
                        f"{series_text(example)}: {_UNKNOWN_WORDS[reason.value]}",
                        {"broker": broker, "reason": reason.value, "series": count},
                    )
                self._unknown[broker, reason.value] = count


def _moment(seconds: float) -> str:
    return moment_to_json(datetime.datetime.fromtimestamp(seconds, datetime.UTC))
