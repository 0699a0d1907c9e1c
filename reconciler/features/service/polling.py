"""A thread that reads one metrics page on a schedule: never two requests at once, and missed scrapes are counted."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconciler.errors import ReconcilerError

if TYPE_CHECKING:
    from reconciler.features.prometheus import ExporterPage, PageColumns, PageRead, ScrapedRows


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeGap:
    """A time without samples of one exporter, as seconds since 1970. ``missed``: scrapes that failed or were skipped."""

    from_s: float
    until_s: float
    missed: int
    reason: str


@dataclass(slots=True, kw_only=True)
class PollCounts:
    """Of one exporter since the start."""

    scrapes: int = 0
    failed: int = 0
    skipped: int = 0
    """Scrapes that were due while the one before was not over."""
    unreadable: int = 0
    """Lines of the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollEvents:
    """What is called, in the thread of the poller."""

    rows: Callable[[ScrapedRows], None]
    begin: Callable[[str], None]
    """A gap begins, with its reason."""
    gap: Callable[[ScrapeGap], None]
    """A gap is over."""


@dataclass(slots=True, kw_only=True)
class Poller:
    """Reads one page again and again, in a thread."""

    page: ExporterPage
    columns: PageColumns
    interval_s: float
    offset_s: float
    on: PollEvents
    wall: Callable[[], float] = time.time
    counts: PollCounts = field(default_factory=PollCounts)
    others: tuple[str, ...] = ()
    """Of the last page, where it has no metric of quotas: the names of other metrics."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _gap: tuple[float, str] | None = None
    _missed: int = 0
    _good_s: float | None = None
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in a thread that does not keep the process alive."""
        self._thread = threading.Thread(target=self._run, name=f"poll {self.page.address}", daemon=True)
        self._thread.start()

    @property
    def is_broken(self) -> bool:
        """Whether a defect of this program ended the thread."""
        return self._thread is not None and not self._thread.is_alive() and not self._stop.is_set()

    def stop(self) -> None:
        """Ask it to end; ``join`` waits."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait up to this many seconds for the scrape that is under way, then give it up."""
        if self._thread is not None:
            self._thread.join(seconds)
        self._end_gap(self.wall())

    def _run(self) -> None:
        begin = time.monotonic() + self.offset_s
        tick = 0
        while not self._stop.wait(max(0.0, begin + tick * self.interval_s - time.monotonic())):
            self._scrape()
            due = max(tick + 1, math.ceil((time.monotonic() - begin) / self.interval_s))
            self._skip(due - tick - 1)
            tick = due

    def _scrape(self) -> None:
        begun, wall = time.monotonic(), self.wall()
        try:
            read = self.page.read()
        except ReconcilerError as error:
            self.counts.failed += 1
            self._missed += 1
            if self._gap is None and not self._stop.is_set():
                self._gap = (wall if self._good_s is None else self._good_s, str(error))
                self.on.begin(str(error))
            return
        self._keep(read, begun)

    def _keep(self, read: PageRead, begun: float) -> None:
        if self._stop.is_set():
            return
        self.counts.scrapes += 1
        self.counts.unreadable, self.others = read.unreadable, read.others
        self._end_gap(read.at_s)
        self._good_s = read.at_s
        self.on.rows(self.columns.rows(read.samples, at_s=read.at_s, monotonic_s=begun))

    def _skip(self, count: int) -> None:
        self.counts.skipped += count
        if count and self._gap is not None:
            self._missed += count

    def _end_gap(self, until_s: float) -> None:
        if self._gap is not None:
            from_s, reason = self._gap
            self.on.gap(ScrapeGap(from_s=from_s, until_s=until_s, missed=self._missed, reason=reason))
        self._gap, self._missed = None, 0
