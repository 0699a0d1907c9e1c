"""Which brokers a backtest models: their version, their window settings, and how they find a client's quota."""

from __future__ import annotations

import importlib
import importlib.machinery
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import QuotaCallbackError, UntrustedError, UsageError
from reconciler.model import CallbackClass, ClusterSpec, LeaderSpread, escaped
from reconciler.resolution import (
    BROKER_SETTINGS,
    CONTROLLER_WINDOW_NUM,
    CONTROLLER_WINDOW_SECONDS,
    GROUP_CALLBACK,
    METHODS,
    WINDOW_NUM,
    WINDOW_SECONDS,
    GroupQuotaCallback,
    QuotaCallback,
)
from reconciler.text import shown
from reconciler.workflows.trusted import TrustedTree
from reconciler.workflows.units import known_leaders

if TYPE_CHECKING:
    from reconciler.traffic import BrokerModel

_MOST: Final = 100_000
_LONGEST_S: Final = 10_000_000
"""Of a whole window: a hundred days, which is nothing to the distance that the replay keeps between buckets."""
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
    era = Era.OVERLAPPING if numbers is None or version is None else Era.of_version(version)
    remembers_kinds = None if numbers is None else numbers < _FORGETTING
    make = None
    if quota_callback is not None or spec.brokers.callback is not None:
        make = chosen_callback(spec, trusted, named=quota_callback, remembers_kinds=bool(remembers_kinds))
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


def chosen_callback(
    spec: ClusterSpec, trusted: TrustedTree | None, *, named: str | None, remembers_kinds: bool = False
) -> Callable[[], QuotaCallback] | None:
    """Return the maker of an instance; ``None``: the brokers have Kafka's own rule.

    ``named``: the class as given on the command line, which the Cluster manifest need not name; its options are the document's
    when it names the same one. The class of our own broker plugin is known here, and needs no trust. Raises ``UntrustedError``
    for a class without a trusted source or whose file is of the work tree, and ``QuotaCallbackError`` for one that cannot be
    imported or has not the methods of the protocol.
    """
    written = spec.brokers.callback
    if GROUP_CALLBACK in (named, written.name if written is not None and named is None else None):
        return partial(GroupQuotaCallback, {"remember-kinds": str(remembers_kinds).lower()})
    if named is not None:
        options = written.options if written is not None and written.name == named else {}
        return _loaded(CallbackClass(name=named, options=options), trusted)
    if written is None:
        return None
    if trusted is None:
        raise UntrustedError(
            f"{_document(spec)} names the quota callback {written.name}, which is code: give --trusted-ref, so that a class "
            f"counts only after merge, or --quota-callback {written.name} to let it run here"
        )
    return _loaded(written, trusted)


def _loaded(named: CallbackClass, trusted: TrustedTree | None) -> Callable[[], QuotaCallback]:
    module_name, colon, class_name = named.name.partition(":")
    if not (colon and module_name and class_name.isidentifier() and all(part.isidentifier() for part in module_name.split("."))):
        raise QuotaCallbackError(f"quota callback {shown(named.name)}: write MODULE:CLASS, such as quota_groups.callback:Groups")
    if trusted is not None:
        _require_not_of_the_work_tree(module_name, trusted)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        where = "Install the package that has it" if module_name.split(".")[0] == missing.split(".")[0] else "Install that, too"
        raise QuotaCallbackError(f"quota callback {named.name}: there is no module {shown(missing)} here. {where}") from error
    except Exception as error:
        reason = escaped(str(error))
        raise QuotaCallbackError(
            f"quota callback {named.name}: importing {module_name} failed: {type(error).__name__}: {reason}"
        ) from error
    callback_class = getattr(module, class_name, None)
    if not isinstance(callback_class, type):
        raise QuotaCallbackError(f"quota callback {named.name}: {module_name} has no class {class_name}")
    missing_methods = [method for method in METHODS if not callable(getattr(callback_class, method, None))]
    if missing_methods:
        raise QuotaCallbackError(
            f"quota callback {named.name}: the class lacks {', '.join(missing_methods)} (kafka-quotas explain totals-and-groups)"
        )
    return partial(_made, callback_class, named.name, dict(named.options))


def _made(callback_class: Callable[[Mapping[str, str]], QuotaCallback], name: str, options: Mapping[str, str]) -> QuotaCallback:
    try:
        return callback_class(options)
    except Exception as error:
        reason = escaped(str(error))
        raise QuotaCallbackError(
            f"quota callback {name}: {type(error).__name__} when it was made with its options: {reason}"
        ) from error


def _require_not_of_the_work_tree(module_name: str, trusted: TrustedTree) -> None:
    """Looked up package by package without running anything, since importing a package runs its ``__init__``."""
    places: list[str] | None = None
    parts = module_name.split(".")
    for count in range(1, len(parts) + 1):
        module_spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:count]), places)
        if module_spec is None:
            return
        if (
            module_spec.origin is not None
            and Path(module_spec.origin).is_file()
            and trusted.files.content(module_spec.origin) is not None
        ):
            raise UntrustedError(
                f"quota callback: the module {module_name} is in the work tree ({shown(module_spec.origin)}), which a pull "
                "request can change. Install it as a package of its own"
            )
        places = list(module_spec.submodule_search_locations or [])


def _document(spec: ClusterSpec) -> str:
    return f"the Cluster manifest {shown(spec.name)}" if spec.name else "the Cluster manifest"
