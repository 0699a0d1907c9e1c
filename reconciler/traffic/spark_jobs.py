"""Spark jobs: their progress, from the status tracker, their figures, and a sentence for a failure."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from reconciler.errors import ReconcilerError, TrafficError
from reconciler.logs import Datum, timed_event
from reconciler.ports import NO_PROGRESS, Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S: Final = 1.0
_PROGRESS: Final[ContextVar[Progress]] = ContextVar("progress", default=NO_PROGRESS)


@contextlib.contextmanager
def job_progress(session: SparkSession, progress: Progress, *, every_s: float = EVERY_S) -> Iterator[None]:
    """Report each of ``logged_stages`` inside as a step, and once in ``every_s`` how many tasks of its known stages are done."""
    tracker = session.sparkContext.statusTracker()
    over = threading.Event()
    counted = StageCount(progress)

    def poll() -> None:
        while not over.wait(every_s):
            # A session that is just being stopped answers with one error or another; then there is nothing to report.
            with contextlib.suppress(Exception):
                active = [stage for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()) if stage]
                counted.update({stage.stageId: (stage.numCompletedTasks, stage.numTasks) for stage in active})

    thread = threading.Thread(target=poll, name="spark-progress", daemon=True)
    thread.start()
    token = _PROGRESS.set(counted)
    try:
        yield
    finally:
        _PROGRESS.reset(token)
        over.set()
        thread.join()


class StageCount:
    """The ``Progress`` of the jobs of a step: a stage that runs no more is done, so that the count never falls."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._now = ""
        self._stages: dict[int, tuple[int, int]] = {}

    def step(self, message: str) -> None:
        """Implement ``Progress.step``."""
        if message != self._now:
            self._now, self._stages = message, {}
        self._progress.step(message)

    def count(self, done: float, total: float | None = None, unit: str = "") -> None:
        """Implement ``Progress.count``."""
        self._progress.count(done, total, unit)

    def update(self, active: Mapping[int, tuple[int, int]]) -> None:
        """Count the tasks of ``active``, done and all by the number of the stage, beside those of earlier stages."""
        ended = {number: (tasks, tasks) for number, (_, tasks) in self._stages.items()}
        self._stages = stages = {**ended, **active}
        if stages:
            self.count(sum(done for done, _ in stages.values()), sum(tasks for _, tasks in stages.values()), "tasks")


_STEPS: Final = {
    "days written": "writing the days",
    "groups judged": "judging the quota groups",
    "kept rows rewritten": "sorting the traffic",
    "rows added up": "adding up the traffic",
    "rows gone through": "reading the traffic",
    "rows kept": "reading the traffic",
}
"""What is being done until the event with this message is logged."""
_DESCRIPTION: Final = "spark.job.description"


@contextmanager
def logged_stages(log: logging.Logger, session: SparkSession, message: str, **data: Datum) -> Iterator[dict[str, Datum]]:
    """Log one event at the end of the block, as ``logs.timed_event`` does.

    Spark's own pages show its jobs by ``message``.
    """
    name = f"{message} ({data['what']})" if "what" in data else message
    _PROGRESS.get().step(f"{_STEPS.get(message, message)} on Spark")
    context, before = None, None
    with contextlib.suppress(Exception):
        context = session.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, f"kafka-quotas: {name}")
    try:
        with timed_event(log, message) as event:
            event |= {"engine": "Spark", **data}
            yield event
    finally:
        with contextlib.suppress(Exception):  # a server that has ended
            if context is not None:
                context.setLocalProperty(_DESCRIPTION, cast("str", before))  # None removes it


def java_gateway() -> Any:
    """The way to the Java of this process; ``None`` when there is none."""
    from pyspark import SparkContext

    return SparkContext._gateway  # noqa: SLF001 - pyspark has no public way to it


_LONGEST: Final = 300
_CAUSE: Final = "Caused by:"
_PYTHON: Final = "let PYSPARK_PYTHON name one that has what the extras traffic and spark bring"
_KNOWN: Final = {
    r"No space left on device|Disk quota exceeded|File too large": "a disk is full: the one it writes to, or where what does not "
    "fit into memory goes, TMPDIR or spark.local.dir",
    r"ModuleNotFoundError: No module named '(?P<what>[\w.]+)'": f"the Python of the workers has no {{what}}: {_PYTHON}",
    r"PYTHON_VERSION_MISMATCH|Python in worker has different version": f"the workers have another version of Python: {_PYTHON}",
    r"(?P<what>\S+) is not a Parquet file": "{what} is not a Parquet file, or was not finished",
    r"CANNOT_READ_FILE_FOOTER\][^\n]*? file (?P<what>\S+?)\.?\s": "{what} is not a Parquet file, or was not finished: "
    "write it again, or take it out",
    r"reconciler\.errors\.TrafficError: recorded traffic (?P<what>[^\n]+)": "{what}",
    r"CANNOT_MERGE_SCHEMA|Failed merging schema": "a column has one type in some files of --traffic and another in others: give "
    "them apart",
    r"reading file (?P<what>[^\n]+?)\.(\s|$)[\s\S]*(Unexpected end of input stream|ZipException|incorrect (data|header) check|"
    r"not a gzip file|invalid (block type|stored block|code lengths|distance))": "the compressed file {what} is damaged or cut "
    "short: take it out, or unpack what is left of it with gzip -dc",
    r"OutOfMemoryError|Container killed .* memory": "Spark ran out of memory: give it more with --conf spark.driver.memory=SIZE",
    r"Cannot run program \"(?P<what>[^\"]+)\"": f"the workers cannot start {{what}}: {_PYTHON}",
    r"Python worker (exited unexpectedly|failed to connect)|(Broken pipe|Connection reset|EOFException)[\s\S]{0,2000}"
    r"org\.apache\.spark\.(api|sql\.execution)\.python\.": "a Python process of a worker ended, perhaps for want of memory",
    r"ExecutorLostFailure|Lost executor|executor .* exited|Worker lost": "Spark lost a worker again and again while the job ran",
    r"(Connect to|Call From \S+ to) (?P<what>[^\s\[]+)[^\n]{0,200}Connection refused": "the server at {what} refuses connections",
    r"UNAVAILABLE|Connection refused|Socket closed|SparkConnectGrpcException": "the server ended, or cannot be reached any more",
    r"SparkContext (was|has been) shut ?down": "Spark was stopped while the job ran",
    r"FILE_NOT_EXIST\][^\n]*? file (?P<what>\S+?)[.:]?\s": "{what} was there when it was listed, and Spark cannot find it now. "
    "Run this again. Every machine that Spark runs on must see the files of --traffic under the same path",
    r"FAILED_READ_FILE|Path does not exist|FileNotFound(Exception|Error)": "Spark cannot read a file: every machine it runs on "
    "must see the files of --traffic under the same path",
}
"""What a failure contains, and the sentence for it."""


@contextmanager
def raise_as_sentences(where: str) -> Iterator[None]:
    """Turn what Spark and its Java raise inside into ``TrafficError``; our own errors pass."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except ReconcilerError:
        raise
    except (PySparkException, Py4JError, ConnectionError) as error:
        # Without its cause: that one asks Java for its text, and Java is about to end.
        raise TrafficError(f"Spark on {where} could not finish: {reason(_text(error))}") from None


_RAISED: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?P<error>\S.*)")
"""What a worker's Python raised, below its traceback."""


def reason(text: str) -> str:
    """The sentence for a failure's whole text; when nothing better is known its last cause, or the first line with an error."""
    for pattern, sentence in _KNOWN.items():
        match = re.search(pattern, text)
        if match:
            return sentence.format(**match.groupdict())
    if raised := _RAISED.search(text):
        return _shortened(raised["error"])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix(_CAUSE).strip() for line in lines if line.startswith(_CAUSE)]
    errors = [line for line in lines if re.search(r"Error|Exception|\[[A-Z_]{6,}", line)]
    named = causes[-1] if causes else (*errors, *lines, "no reason was given")[0]
    return _shortened(named)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it asks a Java process that has ended; then its kind is all that is known
        return type(error).__name__
