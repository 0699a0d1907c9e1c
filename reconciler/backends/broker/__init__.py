"""Kafka brokers, over DescribeClientQuotas and AlterClientQuotas (KIP-546) with kafka-python.

Packages of the library import all that they have: its producer, consumer and administrator, and every request that there is. Few
of these are needed here. So the packages load when a name is asked for, of which some are found in one module alone, and what is
needed takes two thirds of the time to import.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import threading
from collections.abc import Mapping


def _put_off(package_name: str, places: Mapping[str, str]) -> None:
    """``places``: the modules of the package that some of its names are in."""
    spec = importlib.util.find_spec(package_name)
    if package_name in sys.modules or spec is None or spec.loader is None:
        return
    package, loader, turn = importlib.util.module_from_spec(spec), spec.loader, threading.RLock()

    def load(name: str) -> object:
        with turn:
            if name in places:
                return getattr(importlib.import_module(f"{package_name}.{places[name]}"), name)
            if vars(package).pop("__getattr__", None) is not None:
                loader.exec_module(package)
        return getattr(package, name)

    vars(package)["__getattr__"] = load
    sys.modules[package_name] = package


_put_off("kafka", {})
_put_off(
    "kafka.protocol.admin",
    {
        **{f"{verb}ClientQuotas{kind}": "client_quotas" for verb in ("Alter", "Describe") for kind in ("Request", "Response")},
        "DescribeConfigsRequest": "configs",
        "ListGroupsRequest": "groups",
    },
)
_put_off("kafka.protocol.consumer", {"OffsetFetchRequest": "group"})
# As the library does: without a handler, Python prints its warnings.
logging.getLogger("kafka").addHandler(logging.NullHandler())
