"""Every muted connection is an open file."""

from __future__ import annotations

import resource

_WANTED = 8192


def allow_many_files() -> None:
    """As many as the system lets us have, up to what a run can need; the brokers started from here inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _WANTED:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard), hard))
