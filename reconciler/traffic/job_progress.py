"""How far Spark is, told while it works: by its status tracker, or by the progress that a Spark Connect server sends."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from reconciler.ports import Progress
from reconciler.traffic.session import SessionOptions, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S: Final = 5.0


@contextlib.contextmanager
def spark_with_progress(options: SessionOptions, progress: Progress | None) -> Iterator[SparkSession]:
    """A session, from its start to its end told to whoever waits. Raises as ``spark_session``."""
    if progress is None:
        with spark_session(options) as session:
            yield session
        return
    progress.step(f"starting Spark on {options.where}")
    with spark_session(options) as session, job_progress(session, progress.step, remote=options.remote is not None):
        yield session


@contextlib.contextmanager
def job_progress(session: SparkSession, tell: Callable[[str], None], *, remote: bool, every_s: float = EVERY_S) -> Iterator[None]:
    """Tell how many tasks of the stages that run are done, at most once in ``every_s``; nothing of what ends within that time."""
    told = _Told(tell, every_s)
    with _listening(session, told) if remote else _polling(session, told):
        yield


class _Told:
    """Says only what is new, and not too often."""

    def __init__(self, tell: Callable[[str], None], every_s: float) -> None:
        self._tell = tell
        self.every_s = every_s
        self._last = ""
        self._next = time.monotonic() + every_s

    def tasks(self, done: int, known: int) -> None:
        """So many tasks are done, of those of the stages that have begun."""
        said = f"Spark has done {done} of {known} tasks"
        if known and said != self._last and time.monotonic() >= self._next:
            self._last, self._next = said, time.monotonic() + self.every_s
            self._tell(said)


@contextlib.contextmanager
def _polling(session: SparkSession, told: _Told) -> Iterator[None]:
    tracker = session.sparkContext.statusTracker()
    over = threading.Event()

    def poll() -> None:
        while not over.wait(told.every_s):
            # A session that is just being stopped answers with one error or another; then there is nothing to tell.
            with contextlib.suppress(Exception):
                stages = [stage for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()) if stage]
                told.tasks(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))

    thread = threading.Thread(target=poll, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def _listening(session: SparkSession, told: _Told) -> Iterator[None]:
    def heard(stages: Any, **_: object) -> None:
        running = [stage for stage in stages or () if not stage.done]
        told.tasks(sum(stage.num_completed_tasks for stage in running), sum(stage.num_tasks for stage in running))

    # Spark types the handler as a class of its own, and takes any function.
    handlers = cast("Any", session)
    handlers.registerProgressHandler(heard)
    try:
        yield
    finally:
        handlers.removeProgressHandler(heard)
