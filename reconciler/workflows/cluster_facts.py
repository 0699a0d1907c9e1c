"""Facts of a cluster that decide about its quotas: read once, with the quotas, and printed by every command."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reconciler.errors import BackendError
from reconciler.model import (
    NOT_ASKED,
    ClusterIdentity,
    ClusterSpec,
    CurrentState,
    Finding,
    Severity,
)
from reconciler.policy import Judgement
from reconciler.ports import CallbackInspector
from reconciler.resolution import callback_notes

QUOTA_CALLBACK: Final = "quota-callback"


def with_facts(current: CurrentState, source: object) -> CurrentState:
    """The state with the brokers' callback class, if ``source`` can report it; asked once for a state."""
    if current.callback_unknown != NOT_ASKED:
        return current
    if current.cluster.quota_callback is not None:
        return replace(current, callback_unknown=None)
    if not isinstance(source, CallbackInspector):
        return current
    try:
        callback = source.quota_callback()
    except BackendError as error:
        return replace(current, callback_unknown=str(error))
    return replace(current, cluster=current.cluster.with_callback(callback), callback_unknown=None)


def judge_callback(spec: ClusterSpec, cluster: ClusterIdentity) -> Judgement:
    """Brokers with a class of their own: a note, or a warning where the Cluster manifest does not state that class."""
    messages = tuple(callback_notes(cluster))
    if spec.brokers.callback is not None:
        return Judgement(notes=messages)
    return Judgement(
        findings=tuple(
            Finding(id=QUOTA_CALLBACK, severity=Severity.WARNING, message=message, span=spec.span) for message in messages
        )
    )
