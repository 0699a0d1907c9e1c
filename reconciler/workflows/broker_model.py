"""Which brokers a backtest models: their version, their window settings, and how they find a client's quota."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.errors import UsageError
from reconciler.model import ClusterSpec
from reconciler.resolution import BROKER_SETTINGS, CONTROLLER_WINDOW_NUM, CONTROLLER_WINDOW_SECONDS, WINDOW_NUM, WINDOW_SECONDS
from reconciler.workflows.quota_callback import chosen_callback
from reconciler.workflows.trusted import TrustedTree

if TYPE_CHECKING:
    from reconciler.traffic import BrokerRule, Window

_MOST: Final = 100_000
_LONGEST_S: Final = 10_000_000
"""Of a whole window: a hundred days, which is nothing to the distance that the replay keeps between buckets."""
_FORGETTING: Final = (4, 2)
"""The first release that forgets a kind of quota when the last of that kind is removed (KAFKA-19282)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What the command line says of the brokers, over what the Cluster document says; ``None``: nothing."""

    window_samples: int | None = None
    window_seconds: int | None = None
    controller_window_samples: int | None = None
    controller_window_seconds: int | None = None
    quota_callback: str | None = None
    """``MODULE:CLASS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerModel:
    """The brokers as the backtest has them. ``settings_from``: where the windows' settings come from, for people."""

    window: Window
    controller_window: Window
    settings_from: str
    rule: BrokerRule


def broker_model(
    spec: ClusterSpec, options: ModelOptions, *, version: str | None, trusted: TrustedTree | None = None
) -> BrokerModel:
    """Raises ``UsageError`` for a version or number that is none, and as ``chosen_callback``."""
    from reconciler.traffic import BrokerRule, Era, Window

    asked = {
        WINDOW_NUM: options.window_samples,
        WINDOW_SECONDS: options.window_seconds,
        CONTROLLER_WINDOW_NUM: options.controller_window_samples,
        CONTROLLER_WINDOW_SECONDS: options.controller_window_seconds,
    }
    given = {name: _checked(name, value) for name, value in asked.items() if value is not None}
    settings = {**BROKER_SETTINGS, **spec.broker_settings, **given}
    for number, seconds in ((WINDOW_NUM, WINDOW_SECONDS), (CONTROLLER_WINDOW_NUM, CONTROLLER_WINDOW_SECONDS)):
        if settings[number] * settings[seconds] > _LONGEST_S:
            raise UsageError(
                f"{number} times {seconds} is {settings[number] * settings[seconds]} s: at most {_LONGEST_S} s can be modelled"
            )
    numbers = release(version)
    era = Era.OVERLAPPING if numbers is None or version is None else Era.of_version(version)
    make = chosen_callback(spec, trusted, named=options.quota_callback)
    name = options.quota_callback or (spec.quota_callback.name if spec.quota_callback else "")
    return BrokerModel(
        window=Window(samples=settings[WINDOW_NUM], sample_ms=settings[WINDOW_SECONDS] * 1000, era=era),
        controller_window=Window(
            samples=settings[CONTROLLER_WINDOW_NUM], sample_ms=settings[CONTROLLER_WINDOW_SECONDS] * 1000, era=era
        ),
        settings_from=_words(given=bool(given), written=bool(spec.broker_settings)),
        rule=BrokerRule(callback=make, callback_name=name, remembers_kinds=None if numbers is None else numbers < _FORGETTING),
    )


def release(version: str | None) -> tuple[int, int] | None:
    """Major and minor. Raises ``UsageError`` for what is no release."""
    if version is None:
        return None
    parts = version.split(".")
    try:
        return int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    except ValueError as error:
        raise UsageError(f"--kafka-version {version}: write a release such as 3.9 or 4.3.1") from error


def _checked(name: str, value: int) -> int:
    if not 1 <= value <= _MOST:
        raise UsageError(f"{name} {value}: give a whole number from 1 to {_MOST}")
    return value


def _words(*, given: bool, written: bool) -> str:
    sources = [*(["the command line"] if given else []), *(["the Cluster document"] if written else [])]
    return " and ".join(sources) or "Kafka's defaults"
