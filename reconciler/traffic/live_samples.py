"""The samples of one answer of a Prometheus server as numbers of Python: for minutes of some thousand series, not for days."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.traffic.sources.metric_answers import AnsweredSeries, AnswerReader, samples_of
from reconciler.traffic.sources.metric_layouts import MetricSeries, Unattributed


@dataclass(frozen=True, slots=True)
class AnsweredSamples:
    """A series of an answer: (seconds since 1970, value), oldest first. ``read``: whose series it is."""

    answered: AnsweredSeries
    samples: tuple[tuple[float, float], ...]

    @property
    def read(self) -> MetricSeries | Unattributed | None:
        """Whose series it is, why that is not known, or ``None`` for one of another sensor."""
        return self.answered.read

    @property
    def labels(self) -> Mapping[str, str]:
        """With ``__name__``."""
        return self.answered.label_values()


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """``warnings``: of a server that has left something out."""

    samples: Iterator[AnsweredSamples]
    warnings: tuple[str, ...]


def read_answer(body: bytes, reader: AnswerReader) -> LiveAnswer:
    """The series of sensors, with their samples. Raises ``ForeignAnswerError``, also while samples are taken."""
    answer = reader.read(body)
    return LiveAnswer(_samples([series for series in answer.series if series.read is not None]), answer.warnings)


def _samples(wanted: Sequence[AnsweredSeries]) -> Iterator[AnsweredSamples]:
    for some, samples in samples_of(wanted):
        moments, values = (samples.ts_ms / 1000).tolist(), samples.values.tolist()
        at = 0
        for series, count in zip(some, samples.counts.tolist(), strict=True):
            yield AnsweredSamples(series, tuple(zip(moments[at : at + count], values[at : at + count], strict=True)))
            at += count
