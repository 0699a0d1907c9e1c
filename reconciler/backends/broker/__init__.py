"""Kafka brokers, over DescribeClientQuotas and AlterClientQuotas (KIP-546) with kafka-python.

The library's own ``__init__`` imports its producer, consumer and administrator, of which nothing is needed here. It runs when one
of its names is asked for, so the modules that are needed take a quarter less time to import.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import threading


def _put_off_clients() -> None:
    spec = importlib.util.find_spec("kafka")
    if "kafka" in sys.modules or spec is None or spec.loader is None:
        return
    package, loader, turn = importlib.util.module_from_spec(spec), spec.loader, threading.Lock()

    def load(name: str) -> object:
        with turn:
            if vars(package).pop("__getattr__", None) is not None:
                loader.exec_module(package)
        return getattr(package, name)

    vars(package)["__getattr__"] = load
    sys.modules["kafka"] = package
    # As the library does: without a handler, Python prints its warnings.
    logging.getLogger("kafka").addHandler(logging.NullHandler())


_put_off_clients()
