"""Fetch the Kafka jars that a whole run needs, before the first test waits for them: ``python -m tests.support.fetched``."""

from __future__ import annotations

from typing import Final

from reconciler.features.sandbox.jars import ensure_jars, jar_set

VERSIONS: Final = ("4.4.0", "3.9.2")


if __name__ == "__main__":
    for version in VERSIONS:
        ensure_jars(jar_set(version))
