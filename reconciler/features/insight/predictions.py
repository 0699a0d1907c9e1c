"""What a backtest predicted of a run, beside what the traffic since then shows: the check of the product's own verdicts."""

from __future__ import annotations

import datetime
import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.documents import APPLY_REPORT, VALUES, Document, row
from reconciler.errors import FileAccessError, ReconcilerError, TrafficError, UsageError, WrongClusterError
from reconciler.features.insight.evidence import SHOWN_S
from reconciler.features.insight.recorded_rates import group_of_throttle, proposal_in_effect, question_in_effect, span_options
from reconciler.model import (
    ApplyReport,
    BucketVerdict,
    ClusterIdentity,
    ClusterSpec,
    Digest,
    HistoryNeeds,
    Message,
    Prediction,
    Provenance,
    Verdict,
    bucket_words,
    compose,
    escaped,
    key_part,
    peak_of,
    same_value,
)
from reconciler.ports import Progress
from reconciler.render import Line, Style, cluster_title, line, note_line
from reconciler.text import amount_part, count_of, moment_text, percent_text
from reconciler.workflows import Access, BacktestOptions, Proposal, Sources, Where, fetch_samples, open_recorded

if TYPE_CHECKING:
    from reconciler.resolution import QuotaView
    from reconciler.traffic import RecordedThrottle
    from reconciler.workflows import TrustedTree

MONTH: Final = datetime.timedelta(days=30)
"""How long predictions are looked at after a run."""
_COMPARED: Final = datetime.timedelta(days=7)
_LACKING: Final = 0.1
_SHOWN: Final = 20
_OF_SAMPLES: Final = compose("A sample shows a throttle of the minute before it, so a short throttle counts as a longer one.")


class Agreement(enum.StrEnum):
    """How an observation agrees with its prediction."""

    WORSE = "worse"
    """Throttled more than was predicted at most."""
    UNKNOWN = "unknown"
    """Nothing was predicted, or the traffic does not show the group under the limit that was judged."""
    BETTER = "better"
    """Predicted to be throttled, and never was."""
    AS_PREDICTED = "as-predicted"
    """Throttled as much as was predicted, or never, as predicted."""


class ObservedBy(enum.StrEnum):
    """What shows how long a group was throttled."""

    REQUESTS = "requests"
    """Each request, or second, states whether the broker throttled it."""
    SAMPLES = "samples"
    """Samples of throttle times. A throttle between two of them may be missing."""
    RATES = "rates"
    """No throttle is recorded: the time that the rate is over the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedGroup:
    """A quota group that a run changed: what was predicted, and what its worst broker shows since."""

    prediction: Prediction
    agreement: Agreement
    """How the observation agrees with the prediction."""
    throttled: float | None = None
    """Part of its active time that a broker throttled it, from 0 to 1. ``None``: not known."""
    by: ObservedBy = ObservedBy.REQUESTS
    """What shows it."""
    first: datetime.datetime | None = None
    """The first throttle, UTC. ``None`` when there is none."""
    peak: float | None = None
    """The largest rate since the run. A throttled client sends less than it wants to. ``None``: not known."""

    @property
    def growth(self) -> float | None:
        """The largest rate since the run, divided by that of the history. ``None``: not known."""
        return None if self.peak is None or not self.prediction.peak else self.peak / self.prediction.peak

    @property
    def words(self) -> str:
        """Prediction and observation as a clause."""
        return _words(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Predictions of one run beside the traffic since."""

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    digest: Digest | None
    """The digest of the run's plan."""
    since: datetime.datetime
    """Begin of the traffic, UTC: the end of the run, or a minute later where samples are compared."""
    until: datetime.datetime
    """End of the traffic, UTC."""
    groups: tuple[ComparedGroup, ...]
    """The changed quota groups, the worst first."""
    notes: tuple[Message, ...] = ()
    """What the comparison rests on."""

    def count(self, agreement: Agreement) -> int:
        """Quota groups of this agreement."""
        return sum(group.agreement is agreement for group in self.groups)


RUN_COMPARISON: Final = Document(
    cls=RunComparison,
    name="run-comparison",
    title="kafka-quotas why --run",
    codec=VALUES.extended({ComparedGroup: row("*prediction agreement throttled by first observed_peak=peak growth words")}),
)


def read_runs_with_predictions(files: Sequence[str]) -> tuple[ApplyReport, ...]:
    """Return the apply reports of these files. Raises ``FileAccessError``, and ``UsageError`` for one without predictions."""
    runs = []
    for name in files:
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FileAccessError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error
        runs.append(APPLY_REPORT.read(text, name=name))
        if not runs[-1].facts.predictions:
            raise UsageError(f"{escaped(name)} has no predictions. Apply with --backtest FILE --report {escaped(name)}")
    return tuple(runs)


def run_proposal(report: ApplyReport, paths: Sequence[str], cluster: str | None, access: Access) -> Proposal:
    """Return the quotas of the cluster now, or of a snapshot, to judge by what is in effect.

    Raises ``WrongClusterError`` for the report of another cluster, and as ``Sources.view``.
    """
    sources = Sources(Where(paths=tuple(paths), cluster=cluster, access=access))
    view = sources.view("current")
    ran, read = report.cluster, view.cluster
    expected, actual = (ran.id, read.id) if None not in (ran.id, read.id) else (ran.name, read.name)
    if expected is not None and actual is not None and expected != actual:
        msg = f"the report is of cluster {escaped(expected)}, and these quotas are of {escaped(actual)}"
        raise WrongClusterError(msg)
    return proposal_in_effect(view, *sources.cluster())


def compare_runs(
    runs: Sequence[ApplyReport],
    view: QuotaView,
    spec: ClusterSpec,
    trusted: TrustedTree | None,
    *,
    now: datetime.datetime,
    progress: Progress,
) -> tuple[RunComparison, ...]:
    """Compare the runs of the last ``MONTH`` on this cluster with ``spec.traffic``, each for a week at most, the latest first.

    A run whose traffic cannot be read has no quota group that was checked, and the reason as a note.
    """
    proposal = proposal_in_effect(view, spec, trusted)
    ended = [(run.facts.ended, run) for run in runs if run.facts.ended is not None and run.cluster.is_same(view.cluster)]
    compared = []
    for since, run in sorted(ended, key=lambda pair: pair[0], reverse=True):
        if not now - MONTH < since < now:
            continue
        until = min(now, since + _COMPARED)
        try:
            options = span_options(spec, trusted, since, until)
            made = compare_run(run, proposal, options, since=since, until=until, progress=progress)
        except ReconcilerError as error:
            groups = tuple(ComparedGroup(prediction=each, agreement=Agreement.UNKNOWN) for each in run.facts.predictions)
            notes = (compose("{problem}", problem=str(error)),)
            made = RunComparison(cluster=run.cluster, digest=run.digest, since=since, until=until, groups=groups, notes=notes)
        compared.append(made)
    return tuple(compared)


def compare_run(
    report: ApplyReport,
    proposal: Proposal,
    options: BacktestOptions,
    *,
    since: datetime.datetime,
    until: datetime.datetime,
    progress: Progress,
) -> RunComparison:
    """The predictions of a run beside the traffic from ``since`` to ``until``, under the ``proposal``'s proposed quotas.

    Raises as ``open_recorded`` and ``fetch_samples``, and ``TrafficError`` for traffic that has nothing of this time.
    """
    from reconciler.traffic import require_arrow

    require_arrow()
    from reconciler.features.insight.recorded_time import between, recorded_throttles
    from reconciler.traffic import UNCLEAR_TIME, Backtest, doubt_of_history

    options, notes = fetch_samples(proposal, options, progress=progress)
    with open_recorded(proposal, options, throttles=True, progress=progress) as recorded:
        if recorded.gauges:
            # A sample shows a throttle of the minute before it, which can be one from before the run.
            since += datetime.timedelta(seconds=SHOWN_S)
            if until <= since:
                raise TrafficError(
                    f"Samples show what a run changed from a minute after its end on. Try again at {since:%H:%M} UTC"
                )
        judged = Backtest(between(recorded, since, until), question_in_effect(proposal, options)).report()
        throttles = recorded_throttles(recorded, None, since=since, until=until)
        all_stated = recorded.facts.states_throttles
        unread = recorded.facts.unreadable + recorded.facts.not_charged.get(UNCLEAR_TIME, 0)
    rows: dict[tuple[object, ...], list[BucketVerdict]] = defaultdict(list)
    for verdict in judged.verdicts:
        rows[verdict.name, verdict.key].append(verdict)
    times = _times(throttles or (), proposal, since=since)
    compared = [_compare(each, rows[each.bucket, each.key], times, all_stated=all_stated) for each in report.facts.predictions]
    order = list(Agreement)
    compared.sort(key=lambda group: (order.index(group.agreement), -(group.throttled or 0.0), group.prediction.bucket))
    more = [*_not_covered(judged.provenance, since, until)]
    more += [_OF_SAMPLES] if any(throttle.of_samples for throttle in throttles or ()) else []
    if unread:
        more.append(compose("{lines} cannot be read, and can have throttles.", lines=count_of(unread, "line")))
    elif (doubt := doubt_of_history(judged.provenance, HistoryNeeds(hours=0.0))) is not None:
        more.append(compose("Throttles can be missing: {doubt}.", doubt=doubt))
    return RunComparison(
        cluster=report.cluster, digest=report.digest, since=since, until=until, groups=tuple(compared), notes=(*notes, *more)
    )


def _not_covered(provenance: Provenance, since: datetime.datetime, until: datetime.datetime) -> Iterator[Message]:
    """Yield a note about traffic that lacks more than a tenth of the time."""
    first, last = max(provenance.start, since), min(provenance.end, until)
    if last - first < (1 - _LACKING) * (until - since):
        begin, end = (moment_text(each.replace(second=0, microsecond=0)) for each in (first, last))
        yield compose("The traffic covers {begin} to {end} only. The rest of this time is not checked.", begin=begin, end=end)


def _times(
    throttles: Sequence[RecordedThrottle], proposal: Proposal, *, since: datetime.datetime
) -> Mapping[tuple[object, ...], list[float]]:
    """Return by quota group, key and broker the seconds since 1970 with a throttle, rising.

    A throttle that began before ``since`` is one of an earlier limit, however long it lasts.
    """
    from reconciler.resolution import EffectiveQuotas

    quotas = EffectiveQuotas(proposal.proposed)
    times: dict[tuple[object, ...], set[float]] = defaultdict(set)
    for throttle in throttles:
        if throttle.begin_us < since.timestamp() * 1_000_000:
            continue
        bucket = group_of_throttle(throttle, throttle.key, quotas)
        times[bucket, throttle.key, throttle.broker].add(throttle.begin_us // 1_000_000)
    return {place: sorted(seconds) for place, seconds in times.items()}


def _compare(
    prediction: Prediction, rows: Sequence[BucketVerdict], times: Mapping[tuple[object, ...], list[float]], *, all_stated: bool
) -> ComparedGroup:
    rows = [each for each in rows if each.limits.after is not None and same_value(each.limits.after, prediction.limit)]
    if not rows:
        return ComparedGroup(prediction=prediction, agreement=Agreement.UNKNOWN)
    seconds = {each.broker: times.get((each.name, each.key, each.broker), []) for each in rows}
    share = max(_recorded_share(each, len(seconds[each.broker])) for each in rows)
    first = min((shown[0] for shown in seconds.values() if shown), default=None)
    by = ObservedBy.REQUESTS
    if any(each.metrics is not None and not each.recorded.requests for each in rows):
        by = ObservedBy.SAMPLES
    elif not share and not all_stated:
        by = ObservedBy.RATES
        share = max(each.over.share for each in rows)
        first = min((each.over.first.timestamp() for each in rows if share and each.over.first is not None), default=None)
    agreement = Agreement.AS_PREDICTED
    if prediction.verdict is Verdict.INCONCLUSIVE:
        agreement = Agreement.UNKNOWN
    elif share > prediction.accepted:
        agreement = Agreement.WORSE
    elif prediction.verdict is Verdict.THROTTLED and not share:
        agreement = Agreement.BETTER
    return ComparedGroup(
        prediction=prediction, agreement=agreement, throttled=share, by=by, first=_moment(first), peak=max(map(peak_of, rows))
    )


def _moment(second: float | None) -> datetime.datetime | None:
    return None if second is None else datetime.datetime.fromtimestamp(int(second), datetime.UTC)


def _recorded_share(verdict: BucketVerdict, seconds: int) -> float:
    """Part of the active time that the broker recorded a throttle of the group in. ``seconds``: those that have one."""
    metrics = verdict.metrics
    if metrics is not None and not verdict.recorded.requests:
        return min(metrics.throttled_then / metrics.samples, 1.0) if metrics.samples else 0.0
    return min(seconds / verdict.over.active, 1.0) if verdict.over.active else float(seconds > 0)


_NEVER: Final = {
    ObservedBy.REQUESTS: "never throttled",
    ObservedBy.SAMPLES: "no sample shows a throttle",
    ObservedBy.RATES: "never over its limit",
}


def _words(group: ComparedGroup) -> str:
    prediction, share = group.prediction, group.throttled
    if share is None:
        return "not checked: the traffic does not show it under the limit that was judged"
    since = f" since {moment_text(group.first)}" if group.first is not None else ""
    if share:
        seen = (
            f"{'over its limit' if group.by is ObservedBy.RATES else 'throttled'} {percent_text(share)} of its active time{since}"
        )
    else:
        seen = _NEVER[group.by]
    predicted = {Verdict.CLEAR: "clear" if share == 0 else "cleared", Verdict.INCONCLUSIVE: "not predicted"}.get(
        prediction.verdict, f"predicted throttled {percent_text(prediction.share)}"
    )
    grown = ""
    if group.agreement is Agreement.WORSE and group.growth is not None:
        grown = f": traffic is {group.growth:.1f} x the history"
    return f"{predicted}, {'but' if group.agreement is Agreement.WORSE else 'and'} {seen}{grown}"


_LABELS: Final = {
    Agreement.WORSE: "worse",
    Agreement.UNKNOWN: "not checked",
    Agreement.BETTER: "better",
    Agreement.AS_PREDICTED: "as predicted",
}
_TONES: Final = {
    Agreement.WORSE: Style.BAD,
    Agreement.UNKNOWN: Style.WARN,
    Agreement.BETTER: Style.PLAIN,
    Agreement.AS_PREDICTED: Style.GOOD,
}


def counts_words(comparisons: Iterable[RunComparison]) -> str:
    """Return how many quota groups runs changed, and how many of them agree in which way."""
    agreements = [group.agreement for each in comparisons for group in each.groups]
    counts = ", ".join(f"{agreements.count(each)} {_LABELS[each]}" for each in Agreement if each in agreements)
    return f"{count_of(len(agreements), 'changed quota group')}: {counts or 'nothing was predicted'}"


def comparison_lines(comparison: RunComparison) -> Iterator[Line]:
    """Yield a count, and each changed quota group with both sides, the worst first."""
    span = f"{moment_text(comparison.since)} to {moment_text(comparison.until)}"
    yield line((f"{cluster_title(comparison.cluster)}, {span}: ", Style.STRONG), counts_words((comparison,)))
    for group in comparison.groups[:_SHOWN]:
        yield line("  ", group_name(group), ": ", observed_words(group), hang=4)
    if len(comparison.groups) > _SHOWN:
        yield line((f"  {count_of(len(comparison.groups) - _SHOWN, 'more quota group')} in the JSON.", Style.FAINT))
    for note in comparison.notes:
        yield note_line(note)


def group_name(group: ComparedGroup) -> Message:
    """Return the quota group, its key and the limit that was judged."""
    prediction = group.prediction
    return compose(
        "{group}, {key} {limit}",
        group=bucket_words(prediction.bucket),
        key=key_part(prediction.key),
        limit=amount_part(prediction.key, prediction.limit),
    )


def observed_words(group: ComparedGroup) -> tuple[str, Style]:
    """Return prediction and observation as a clause, in the colour of its agreement."""
    return group.words, _TONES[group.agreement]
