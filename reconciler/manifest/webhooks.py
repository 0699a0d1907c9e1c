"""``notifications`` of a Cluster manifest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.manifest.collector import Collector, mapping, text, texts
from reconciler.model import NotificationEvent, Webhook, WebhookFormat
from reconciler.yaml import YamlNode

_EVENTS: Final = {event.value: event for event in NotificationEvent}
_FORMATS: Final = {form.value: form for form in WebhookFormat}


def parse_webhooks(nodes: tuple[YamlNode, ...], out: Collector) -> Iterator[Webhook]:
    """The webhooks that can be used; the schema reports the others."""
    for node in nodes:
        name, url = text(node, "name"), mapping(node, "url")
        variable, file = text(url, "env"), text(url, "file")
        form = _FORMATS.get(text(node, "format") or WebhookFormat.JSON.value)
        if name is None or form is None or (variable is None) == (file is None):
            continue
        chosen = frozenset(_EVENTS[word] for word in texts(node, "events") if word in _EVENTS)
        yield Webhook(
            name=name,
            format=form,
            variable=variable,
            file=file,
            events=chosen or frozenset(NotificationEvent),
            ca_file=text(node, "caFile"),
            span=out.span(node),
        )
