"""What is known around a run: its CI job, the pull request whose merge it applies, what a backtest predicted, what was watched.

Unknown facts are absent, never guessed.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Final

from reconciler.model.cluster import Verdict
from reconciler.model.effect import BucketName
from reconciler.model.entity import Entity
from reconciler.model.finding import Count

UNPREDICTED_SHARE: Final = 0.01
"""Of the time, how much of it a quota group may be throttled beyond what a backtest predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The CI job of a run, by the variables of its environment."""

    source: str
    """Where these facts come from."""
    run: str | None = None
    """The address of the job's log."""
    commit: str | None = None
    """The commit that the job was started for."""
    started_by: str | None = None
    """Login of the account that started the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRequest:
    """The pull request or merge request that brought the commit of a run, by the API of its forge."""

    source: str
    """Where these facts come from."""
    number: int
    """Its number."""
    url: str | None = None
    """Its page."""
    author: str | None = None
    """Login of the account that opened it."""
    approvers: tuple[str, ...] = ()
    """Logins of the accounts whose last review approves it, sorted."""
    merged_by: str | None = None
    """Login of the account that merged it."""
    merged: datetime.datetime | None = None
    """UTC. When it was merged."""
    merge_commit: str | None = None
    """The commit that the merge made on the target branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What is known of the reason for a run."""

    job: JobFacts
    """The job."""
    pull_request: MergedRequest | None = None
    """The merged request. ``None`` when the commit belongs to none, or the forge was not asked or did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a backtest predicted of one quota group that a plan changes, on the broker where it is worst."""

    bucket: BucketName
    """Kafka's metric tags, or those of a quota callback, names as they are. An absent tag is absent."""
    key: str
    """The quota key."""
    entity: Entity
    """The entity whose quota limits the group after the change. ``None`` for a name is the default."""
    limit: float
    """The limit that was judged, in the unit of the key."""
    verdict: Verdict
    """The verdict for this limit."""
    share: float
    """Part of its active time that the group is over the limit, from 0 to 1."""
    share_at_most: float
    """Part of its active time that the group is possibly over the limit. Equal to ``share`` where requests were judged."""
    peak: float
    """The largest rate of the history, in the unit of the key."""

    @property
    def accepted(self) -> float:
        """The part of the time that a broker may throttle the group before a watched step is given back."""
        return self.share_at_most + UNPREDICTED_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedGroup:
    """A quota group on one broker that was throttled while a step was watched."""

    bucket: BucketName
    """Kafka's metric tags, or those of a quota callback, names as they are. An absent tag is absent."""
    key: str
    """The quota key."""
    broker: str
    """Id of the broker, or the address of its exporter where no id is known."""
    rate: float
    """The largest rate of the time, in the unit of the key."""
    limit: float | None
    """The limit of the step. ``None`` when no quota limits the group."""
    throttled: float
    """Part of the watched time that the broker throttled the group, from 0 to 1."""
    accepted: float
    """The largest part that is accepted: what the backtest predicted at most and 0.01, or 0.01 without a prediction."""

    @property
    def is_too_much(self) -> bool:
        """Whether the group is throttled more than is accepted."""
        return self.throttled > self.accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedStep:
    """One step of a run that lowers limits, as its source showed it after the write."""

    step: Count
    """Number of the step, from 1."""
    seconds: float
    """The time that the source shows, from the write of the step on."""
    groups: Count
    """Quota groups with traffic whose limit the step changed, each once for each broker."""
    throttled: tuple[WatchedGroup, ...] = ()
    """Those that were throttled, the worst first, at most 20."""

    @property
    def exceeding(self) -> tuple[WatchedGroup, ...]:
        """Return the quota groups that are throttled more than is accepted."""
        return tuple(group for group in self.throttled if group.is_too_much)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRecord:
    """How a run watched its steps, and whether it gave the last one back."""

    source: str
    """Where the figures come from."""
    steps: tuple[WatchedStep, ...] = ()
    """The steps that were watched, in their order."""
    given_back: bool | None = None
    """Whether every broker shows the values from before the last step again. ``None``: no step was given back."""
    seconds_to_give_back: float | None = None
    """From the write of the last step until its values from before were read back. ``None``: no step was given back."""
