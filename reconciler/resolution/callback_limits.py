"""Limits and buckets by a quota callback, asked as a broker would ask it, and its answers checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

from reconciler.errors import QuotaCallbackError
from reconciler.model import EntityType, escaped
from reconciler.resolution.default_callback import CLIENT_ID_TAG, USER_TAG
from reconciler.resolution.levels import Bucket, QuotaTable, Resolved
from reconciler.resolution.quota_callback import TYPE_OF_KEY, ClusterMetadata, Principal, QuotaCallback, QuotaType

MakeCallback = Callable[[], QuotaCallback]
"""A new instance, as a broker makes one when it starts."""

_Answer = TypeVar("_Answer")

_OF_CLIENTS: Final = frozenset({EntityType.USER.value, EntityType.CLIENT_ID.value})


class CallbackLimits:
    """What one broker's callback says of one quota key. Raises ``QuotaCallbackError`` wherever the class raises or errs."""

    def __init__(self, callback: QuotaCallback, quota_type: QuotaType) -> None:
        self._callback = callback
        self._type = quota_type
        self._limits: dict[Bucket, float | None] = {}

    def resolve(self, user: str, client_id: str) -> Resolved:
        """The bucket and its limit; no entity is named, since a callback computes as it likes."""
        tags = self._asked(
            "quota_metric_tags", lambda: self._callback.quota_metric_tags(self._type, Principal(name=user), client_id)
        )
        bucket = _bucket(tags, type(self._callback).__qualname__)
        if bucket not in self._limits:
            limit = self._asked("quota_limit", lambda: self._callback.quota_limit(self._type, dict(tags)))
            self._limits[bucket] = _checked_limit(limit, bucket, type(self._callback).__qualname__)
        return Resolved(bucket=bucket, computed=self._limits[bucket])

    def _asked(self, method: str, call: Callable[[], _Answer]) -> _Answer:
        return called(self._callback, method, call)


class BrokerLimits:
    """The callback's answers by broker: each broker has an instance of its own, which may see the cluster differently."""

    def __init__(self, by_broker: Mapping[int, CallbackLimits]) -> None:
        self._by_broker = by_broker

    def at(self, broker: int) -> CallbackLimits:
        """Those of one broker."""
        return self._by_broker[broker]


def callback_limits(
    make: MakeCallback, quotas: QuotaTable, metadata: Mapping[int, ClusterMetadata | None]
) -> dict[str, BrokerLimits]:
    """By quota key. ``metadata``: by broker of which traffic is known; ``None`` where the cluster's partitions are not.

    Each instance is told the metadata, then every quota in the order of entities, then asked whether it wants its limits read
    again. Raises ``QuotaCallbackError``.
    """
    callbacks = {broker: told(make(), quotas, known) for broker, known in sorted(metadata.items())}
    return {
        key: BrokerLimits({broker: CallbackLimits(callback, quota_type) for broker, callback in callbacks.items()})
        for key, quota_type in TYPE_OF_KEY.items()
    }


def told(callback: QuotaCallback, quotas: QuotaTable, metadata: ClusterMetadata | None) -> QuotaCallback:
    """The same callback, after a broker's start with these quotas."""
    if metadata is not None:
        called(callback, "update_cluster_metadata", lambda: callback.update_cluster_metadata(metadata))
    for entity in sorted(quotas, key=lambda entity: entity.sort_key):
        if not _OF_CLIENTS.issuperset(entity.types):
            continue
        for key, value in sorted(quotas[entity].items()):
            quota_type = TYPE_OF_KEY.get(key)
            if quota_type is not None:
                called(callback, "update_quota", partial(callback.update_quota, quota_type, entity, value))
    for quota_type in QuotaType:
        called(callback, "quota_reset_required", partial(callback.quota_reset_required, quota_type))
    return callback


def called(callback: object, method: str, call: Callable[[], _Answer]) -> _Answer:
    """The answer of a method of a class that is not ours."""
    try:
        return call()
    except Exception as error:
        who, said = type(callback).__qualname__, escaped(str(error))
        raise QuotaCallbackError(f"the quota callback {who} failed in {method}: {type(error).__name__}: {said}") from error


def _bucket(tags: object, who: str) -> Bucket:
    if not isinstance(tags, Mapping) or not all(isinstance(k, str) and isinstance(v, str) for k, v in tags.items()):
        raise QuotaCallbackError(
            f"the quota callback {who}: quota_metric_tags must return a mapping of text to text, not {tags!r}"
        )
    # A tag that is empty is left out of the broker's metric names, too.
    other = tuple(sorted((name, value) for name, value in tags.items() if value and name not in (USER_TAG, CLIENT_ID_TAG)))
    return Bucket(user=tags.get(USER_TAG, ""), client_id=tags.get(CLIENT_ID_TAG, ""), other=other)


def _checked_limit(limit: object, bucket: Bucket, who: str) -> float | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not math.isfinite(limit) or limit <= 0:
        tags = {USER_TAG: bucket.user, CLIENT_ID_TAG: bucket.client_id, **dict(bucket.other)}
        shown = {name: value for name, value in tags.items() if value}
        raise QuotaCallbackError(
            f"the quota callback {who}: quota_limit must return a finite number above 0, or None for unlimited, not {limit!r} "
            f"(for the tags {shown})"
        )
    return float(limit)
