"""Which class stands for the brokers' quota callback, imported where that is trusted."""

from __future__ import annotations

import importlib
import importlib.machinery
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from reconciler.errors import QuotaCallbackError, UntrustedError
from reconciler.features.callbacks.callback import (
    METHODS,
    GroupQuotaCallback,
    MakeCallback,
    QuotaCallback,
    callback_limits,
    metadata_of,
)
from reconciler.model import CallbackClass, ClusterSpec, LeaderSpread, escaped
from reconciler.resolution import GROUP_CALLBACK, BrokerLimits, QuotaTable
from reconciler.text import shown
from reconciler.workflows import TrustedTree


def chosen_callback(
    spec: ClusterSpec, trusted: TrustedTree | None, *, named: str | None, remembers_kinds: bool = False
) -> Callable[[QuotaTable, LeaderSpread | None, Collection[int]], Mapping[str, BrokerLimits]]:
    """Return what asks the callback for the limits of clients, by key, from quotas, leaders and ids of brokers.

    ``named``: the class as given on the command line, which the Cluster manifest need not name; its options are the document's
    when it names the same one. The class of our own broker plugin is known here, and needs no trust. Raises ``UntrustedError``
    for a class without a trusted source or whose file is of the work tree, and ``QuotaCallbackError`` for one that cannot be
    imported or has not the methods of the protocol.
    """
    written = spec.brokers.callback
    if GROUP_CALLBACK in (named, written.name if written is not None and named is None else None):
        return partial(_limits, partial(GroupQuotaCallback, {"remember-kinds": str(remembers_kinds).lower()}))
    if named is not None:
        options = written.options if written is not None and written.name == named else {}
        return partial(_limits, _loaded(CallbackClass(name=named, options=options), trusted))
    assert written is not None
    if trusted is None:
        raise UntrustedError(
            f"{_document(spec)} names the quota callback {written.name}, which is code: give --trusted-ref, so that a class "
            f"counts only after merge, or --quota-callback {written.name} to let it run here"
        )
    return partial(_limits, _loaded(written, trusted))


def _limits(
    make: MakeCallback, quotas: QuotaTable, leaders: LeaderSpread | None, brokers: Collection[int]
) -> dict[str, BrokerLimits]:
    return callback_limits(make, quotas, dict.fromkeys(brokers) if leaders is None else metadata_of(leaders, brokers))


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
