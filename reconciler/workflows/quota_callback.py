"""The Python class of ``spec.quotaCallback``: found, trusted, loaded and looked at.

A class is code. Whoever may name one decides what runs where the backtest runs, with its rights; so it is loaded only when a
trusted reference names it, or the person on the command line does, and then never from files that a pull request can change.
"""

from __future__ import annotations

import importlib
import importlib.machinery
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from reconciler.errors import QuotaCallbackError, UntrustedError
from reconciler.model import CallbackClass, ClusterSpec, escaped
from reconciler.resolution import METHODS, QuotaCallback
from reconciler.text import shown
from reconciler.workflows.trusted import TrustedTree


def chosen_callback(spec: ClusterSpec, trusted: TrustedTree | None, *, named: str | None) -> Callable[[], QuotaCallback] | None:
    """What makes an instance; ``None``: the brokers have Kafka's own rule.

    ``named``: the class as given on the command line, which the Cluster document need not name; its options are the document's
    when it names the same one. Raises ``UntrustedError`` for a class that nobody vouches for or whose file is of the work
    tree, and ``QuotaCallbackError`` for one that cannot be imported or has not the methods of the protocol.
    """
    written = spec.quota_callback
    if named is not None:
        options = written.options if written is not None and written.name == named else {}
        return _loaded(CallbackClass(name=named, options=options), trusted)
    if written is None:
        return None
    if trusted is None:
        raise UntrustedError(
            f"{_document(spec)} names the quota callback {written.name}, which is code: give --trusted-ref, so that a class "
            f"counts only after merge, or --quota-callback {written.name} to say that it may run here"
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
        where = "install the package that has it" if module_name.split(".")[0] == missing.split(".")[0] else "install that, too"
        raise QuotaCallbackError(f"quota callback {named.name}: there is no module {shown(missing)} here; {where}") from error
    except Exception as error:
        said = escaped(str(error))
        raise QuotaCallbackError(
            f"quota callback {named.name}: importing {module_name} failed: {type(error).__name__}: {said}"
        ) from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise QuotaCallbackError(f"quota callback {named.name}: {module_name} has no class {class_name}")
    missing_methods = [method for method in METHODS if not callable(getattr(found, method, None))]
    if missing_methods:
        raise QuotaCallbackError(
            f"quota callback {named.name}: the class lacks {', '.join(missing_methods)}; docs/quota-callbacks.md has the protocol"
        )
    return partial(_made, found, named.name, dict(named.options))


def _made(found: Callable[[Mapping[str, str]], QuotaCallback], name: str, options: Mapping[str, str]) -> QuotaCallback:
    try:
        return found(options)
    except Exception as error:
        said = escaped(str(error))
        raise QuotaCallbackError(
            f"quota callback {name}: {type(error).__name__} when it was made with its options: {said}"
        ) from error


def _require_not_of_the_work_tree(module_name: str, trusted: TrustedTree) -> None:
    """Looked up package by package without running anything, since importing a package runs its ``__init__``."""
    places: list[str] | None = None
    parts = module_name.split(".")
    for count in range(1, len(parts) + 1):
        found = importlib.machinery.PathFinder.find_spec(".".join(parts[:count]), places)
        if found is None:
            return
        if found.origin is not None and Path(found.origin).is_file() and trusted.files.content(found.origin) is not None:
            raise UntrustedError(
                f"quota callback: the module {module_name} is in the work tree ({shown(found.origin)}), which a pull request can "
                "change; install it as a package of its own"
            )
        places = list(found.submodule_search_locations or [])


def _document(spec: ClusterSpec) -> str:
    return f"the Cluster document {shown(spec.name)}" if spec.name else "the Cluster document"
