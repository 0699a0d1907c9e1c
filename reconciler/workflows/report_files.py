"""What a report takes from files: the last runs of audit files, and the results of backtests."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError
from reconciler.formats import FORMAT_VERSION, shown
from reconciler.model import BucketTraffic, ClusterIdentity, Form, PeakBound, RunRecord, TrafficOverview, Verdict, escaped
from reconciler.planning import Place
from reconciler.workflows.backtest_reading import read_unjudged
from reconciler.workflows.trusted_files import TrustedFiles

MOST_RUNS: Final = 200
"""Runs that a report shows; of each audit file so many of the last lines are kept while it is read."""
_LONGEST_LINE: Final = 1 << 20
_MAJOR: Final = FORMAT_VERSION.partition(".")[0]
_MOST_NOTES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the files have; ``notes`` tell of lines that are no record of a run."""

    runs: tuple[RunRecord, ...] = ()
    runs_left_out: int = 0
    audited: bool = False
    traffic: tuple[TrafficOverview, ...] = ()
    notes: tuple[str, ...] = ()


def read_recorded(audits: Sequence[str], backtests: Sequence[str], *, trusted: TrustedFiles | None = None) -> Recorded:
    """Read all files. Raises ``FileAccessError`` for one that cannot be read, and for a backtest that is none.

    With ``trusted`` it raises ``UntrustedError`` for one that git tracks and that differs from the reference.
    """
    if trusted is not None:
        for file in (*audits, *backtests):
            trusted.require_same(file)
    runs: list[RunRecord] = []
    notes: list[str] = []
    left_out = 0
    for name in audits:
        found, more, wrong = _audit(name)
        runs += found
        left_out += more
        notes += wrong
    runs.sort(key=lambda run: (run.ended, run.started), reverse=True)
    return Recorded(
        runs=tuple(runs[:MOST_RUNS]),
        runs_left_out=left_out + max(0, len(runs) - MOST_RUNS),
        audited=bool(audits),
        traffic=tuple(read_backtest(name) for name in backtests),
        notes=tuple(notes),
    )


def _audit(name: str) -> tuple[list[RunRecord], int, list[str]]:
    """The last runs of a file, how many came before them, and what is wrong with its lines."""
    kept: deque[RunRecord] = deque(maxlen=MOST_RUNS)
    total = 0
    wrong: list[str] = []
    bad = 0
    try:
        with Path(name).open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if not line.strip():
                    continue
                try:
                    kept.append(_run(name, json.loads(line)))
                    total += 1
                except (ValueError, RecursionError) as error:
                    bad += 1
                    if bad <= _MOST_NOTES:
                        wrong.append(f"{escaped(name)}:{number} is not a line that --audit writes, and is left out: {error}")
    except OSError as error:
        msg = f"cannot read the audit file {name}: {error.strerror}"
        raise FileAccessError(msg) from error
    if bad > _MOST_NOTES:
        wrong.append(f"{escaped(name)}: {bad - _MOST_NOTES} more lines like these are left out")
    return list(kept), total - len(kept), wrong


def _run(file: str, document: object) -> RunRecord:
    root = _of_this_format(document)
    cluster, source, counts = root["cluster"], root["source"], root["summary"]
    numbers = {key: counts[key].count(0) for key in ("applied", "failed", "unknown", "not_attempted")}
    return RunRecord(
        file=file,
        started=root["started"].moment(),
        ended=root["ended"].moment(),
        command=root["command"].text(),
        cluster=ClusterIdentity(**{key: cluster[key].optional(Place.text) for key in ("name", "id", "kafka_version")}),
        result=root["result"].text(),
        failure_reason=root["failure_reason"].optional(Place.text),
        verified=root["verified"].flag(),
        validate_only=root["validate_only"].flag(),
        accepted=tuple(one.text() for one in root["accepted"].items()),
        principal=root["principal"].optional(Place.text),
        os_user=root["os_user"].text(),
        commit=source["commit"].optional(Place.text),
        dirty=source["dirty"].optional(Place.flag),
        **numbers,
    )


def read_backtest(name: str) -> TrafficOverview:
    """What ``backtest --format json`` printed; fields that are not shown are passed over. Raises ``FileAccessError``."""
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        msg = f"cannot read the backtest {name}: {error.strerror}"
        raise FileAccessError(msg) from error
    try:
        return _traffic(name, json.loads(content))
    except (ValueError, RecursionError) as error:
        msg = f"{name} is not a report written by 'backtest --format json': {error}"
        raise FileAccessError(msg) from error


def _traffic(name: str, document: object) -> TrafficOverview:
    root = _of_this_format(document)
    provenance = root["provenance"]
    return TrafficOverview(
        file=name,
        form=provenance["form"].one_of(Form),
        semantics=provenance["semantics"].text(),
        start=provenance["span"]["from"].moment(),
        end=provenance["span"]["to"].moment(),
        requests=provenance["requests"].count(0),
        current_known=provenance["current_known"].flag(),
        cluster=cluster.optional(Place.text) if (cluster := root.get("cluster")) else None,
        headline=_headline(root),
        buckets=tuple(_bucket(place) for place in root["verdicts"].items()),
        unjudged=tuple(read_unjudged(place) for place in unjudged.items()) if (unjudged := root.get("unjudged")) else (),
    )


def _headline(root: Place) -> str:
    """Empty in a report of a version that wrote none."""
    summary = root.get("summary")
    headline = summary.get("headline") if summary else None
    return headline.text() if headline else ""


def _bucket(place: Place) -> BucketTraffic:
    tags = place["bucket"]
    return BucketTraffic(
        bucket={tag: tags[tag].text() for tag in tags.mapping()},
        key=place["key"].text(),
        broker=place["broker"].count(-1),
        entity=place["entity"].optional(Place.entity),
        limit_before=place["limit_before"].optional(Place.amount),
        limit_after=place["limit_after"].optional(Place.amount),
        changed=place["changed"].flag(),
        verdict=place["verdict"].one_of(Verdict),
        requests=place["requests"].count(0),
        active_seconds=place["active_seconds"].count(0),
        seconds_over=place["seconds_over"].count(0),
        peak=place["peak"].amount(),
        peak_bound=bound.one_of(PeakBound) if (bound := place.get("peak_bound")) else PeakBound.EXACT,
        safe=safe.optional(Place.amount) if (safe := place.get("safe")) else None,
        recommended=place["recommended"].optional(Place.amount),
        reason=reason.optional(Place.text) if (reason := place.get("reason")) else None,
    )


def _of_this_format(document: object) -> Place:
    root = Place("the document", document)
    version = root["format_version"].text()
    if version.partition(".")[0] != _MAJOR:
        msg = f"it is of format {shown(version)}; this version reads format {_MAJOR}"
        raise ValueError(msg)
    return root
