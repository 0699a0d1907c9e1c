"""Brokers that resolve quotas with a class of their own: its name, and what it means for quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import ClusterIdentity, Message, compose, display_name, flag_part, name_part
from reconciler.resolution.group_callback import GROUP_CALLBACK

_SETTING: Final = flag_part("client.quota.callback.class")


def foreign_callback(cluster: ClusterIdentity) -> str | None:
    """The class of brokers whose limits are not known here. That of the groups' plugin is known."""
    callback = cluster.quota_callback
    return None if callback is None or callback == GROUP_CALLBACK else callback


def callback_notes(cluster: ClusterIdentity) -> Iterator[Message]:
    """What such a class means, in a sentence; nothing where the brokers have Kafka's own rules."""
    if (callback := foreign_callback(cluster)) is not None:
        yield compose(
            "The brokers resolve quotas with their own class {callback} ({setting}). A quota may limit other clients than it "
            "names, or none.",
            callback=name_part(display_name(callback)),
            setting=_SETTING,
        )
