"""Which brokers a backtest models: their version, their window settings, and how they find a client's quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reconciler.errors import UsageError
from reconciler.hooks import added, load
from reconciler.model import ClusterSpec, LeaderSpread
from reconciler.resolution import (
    BROKER_SETTINGS,
    CONTROLLER_WINDOW_NUM,
    CONTROLLER_WINDOW_SECONDS,
    GROUP_CALLBACK,
    WINDOW_NUM,
    WINDOW_SECONDS,
)
from reconciler.workflows.trusted import TrustedTree
from reconciler.workflows.units import known_leaders

if TYPE_CHECKING:
    from reconciler.traffic import BrokerModel

_MOST: Final = 100_000
_LONGEST_S: Final = 10_000_000
"""Of a whole window: a hundred days, which is nothing to the distance that the replay keeps between buckets."""
_OVERLAPPING: Final = (3, 8)
"""The first release that keeps a sample until its last event is old."""
_FORGETTING: Final = (4, 2)
"""The first release that forgets a kind of quota when the last of that kind is removed (KAFKA-19282)."""

_CAPPING: Final = (4, 4)
"""The first release that caps the throttles of produce and fetch at 2^31 - 1 ms. Before, a longer one wraps around."""


def broker_model(
    spec: ClusterSpec,
    *,
    version: str | None,
    quota_callback: str | None = None,
    trusted: TrustedTree | None = None,
    leaders: LeaderSpread | None = None,
) -> BrokerModel:
    """The brokers of a version. ``leaders``: of the cluster's partitions, which the plugin of groups gets.

    ``quota_callback``: ``MODULE:CLASS``, over that of the Cluster manifest.

    Raises ``UsageError`` for an invalid version or number, ``UntrustedError`` or ``QuotaCallbackError`` for the callback.
    """
    from reconciler.traffic import BrokerModel, BrokerRule, Era, Window

    settings = {**BROKER_SETTINGS, **spec.brokers.settings}
    for number, seconds in ((WINDOW_NUM, WINDOW_SECONDS), (CONTROLLER_WINDOW_NUM, CONTROLLER_WINDOW_SECONDS)):
        if settings[number] * settings[seconds] > _LONGEST_S:
            raise UsageError(
                f"{number} times {seconds} is {settings[number] * settings[seconds]} s: at most {_LONGEST_S} s can be modelled"
            )
    numbers = release(version)
    era = Era.OVERLAPPING if numbers is None or numbers >= _OVERLAPPING else Era.DROPPING
    remembers_kinds = None if numbers is None else numbers < _FORGETTING
    make = None
    if quota_callback is not None or spec.brokers.callback is not None:
        place = next(added("QUOTA_CALLBACKS"), None)
        if place is None:
            raise UsageError("this installation cannot ask a quota callback. Install one that has the feature callbacks")
        make = load(place)(spec, trusted, named=quota_callback, remembers_kinds=bool(remembers_kinds))
    name = quota_callback or (spec.brokers.callback.name if spec.brokers.callback else "")
    return BrokerModel(
        window=Window(
            samples=settings[WINDOW_NUM],
            sample_ms=settings[WINDOW_SECONDS] * 1000,
            era=era,
            wraps=numbers is None or numbers < _CAPPING,
        ),
        controller_window=Window(
            samples=settings[CONTROLLER_WINDOW_NUM], sample_ms=settings[CONTROLLER_WINDOW_SECONDS] * 1000, era=era
        ),
        settings_from="the Cluster manifest" if spec.brokers.settings else "Kafka's defaults",
        rule=BrokerRule(
            callback=make,
            callback_name=name,
            remembers_kinds=remembers_kinds,
            leaders=known_leaders(leaders, numbers) if name == GROUP_CALLBACK else None,
        ),
    )


def release(version: str | None) -> tuple[int, int] | None:
    """Major and minor. Raises ``UsageError`` for what is not a release."""
    if version is None:
        return None
    parts = version.split(".")
    try:
        return int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    except ValueError as error:
        raise UsageError(f"--kafka-version {version}: write a release such as 3.9 or 4.3.1") from error
