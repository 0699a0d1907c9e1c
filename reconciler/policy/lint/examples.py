"""An example for every lint rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import Example, entries, entry, stream
from reconciler.model.explanation import cluster

_ONE: Final = "{producer_byte_rate: 1MiB}"
_FIVE: Final = "{producer_byte_rate: 5MiB}"
_DEFAULT_USER: Final = "{user: {default: true}}"
_PROTECTED: Final = cluster("protected: [{user: replicator}]")

EXAMPLES: Final[Mapping[str, Example]] = {
    "default-hides-client-ids": Example(
        bad=entries((_DEFAULT_USER, _ONE), ("{client-id: etl}", _FIVE)),
        good=entries((_DEFAULT_USER, _ONE), ("{user: {default: true}, client-id: etl}", _FIVE)),
    ),
    "client-id-never-wins": Example(
        bad=entry(_FIVE, "{client-id: etl}"),
        good=entry(_FIVE, "{user: {default: true}, client-id: etl}"),
        live=("user=<default> producer_byte_rate=1048576",),
    ),
    "default-client-multiplies": Example(
        bad=entry(_ONE, "{user: orders, client-id: {default: true}}"),
        good=entry(_ONE, "{user: orders}"),
    ),
    "user-cap-bypassed": Example(
        bad=entries(("{user: orders}", _FIVE), ("{user: orders, client-id: {default: true}}", _ONE)),
        good=entry(_FIVE, "{user: orders}"),
    ),
    "default-captures-protected": Example(
        bad=stream(_PROTECTED, entry(_ONE, _DEFAULT_USER)),
        good=stream(_PROTECTED, entries((_DEFAULT_USER, _ONE), ("{user: replicator}", "{producer_byte_rate: 1GiB}"))),
    ),
    "first-default": Example(
        bad=entry(_ONE, _DEFAULT_USER), good=entry(_ONE, "{user: orders}"), live=("user=payments producer_byte_rate=1048576",)
    ),
    "empty-client-id-escapes": Example(
        bad=entry(_ONE, "{user: orders, client-id: {default: true}}"), good=entry(_ONE, "{user: orders}")
    ),
    "ip-two-spellings": Example(
        bad=entries(
            ("{ip: 10.0.0.7}", "{connection_creation_rate: 10}"), ('{ip: "::ffff:10.0.0.7"}', "{connection_creation_rate: 20}")
        ),
        good=entry("{connection_creation_rate: 10}", "{ip: 10.0.0.7}"),
    ),
    "confusable-name": Example(
        bad=entries(("{user: payments}", _ONE), ('{user: "p\\u0430yments"}', _FIVE)),
        good=entries(("{user: payments}", _ONE), ("{user: payments-2}", _FIVE)),
    ),
    "percentage-no-limit": Example(bad=entry("{request_percentage: 5000}"), good=entry("{request_percentage: 200}")),
    "percentage-small": Example(bad=entry("{request_percentage: 2}"), good=entry("{request_percentage: 25}")),
    "byte-rate-small": Example(bad=entry("{producer_byte_rate: 1024}"), good=entry("{producer_byte_rate: 1024KiB}")),
    "byte-rate-overflow": Example(bad=entry("{producer_byte_rate: 1B}"), good=entry("{producer_byte_rate: 1KiB}")),
    "byte-rate-mistyped": Example(bad=entry("{producer_byte_rate: 10085760}"), good=entry("{producer_byte_rate: 10MiB}")),
    "same-as-fallback": Example(
        bad=entries((_DEFAULT_USER, _ONE), ("{user: orders}", _ONE)),
        good=entries((_DEFAULT_USER, _ONE), ("{user: orders}", _FIVE)),
    ),
    "streams-thread-client-id": Example(
        bad=entry(_ONE, "{client-id: orders-StreamThread-1-producer}"), good=entry(_ONE, "{user: orders}")
    ),
    "reduction-throttles": Example(
        bad=entry(_ONE, "{user: orders}"),
        good=entry("{producer_byte_rate: 50MiB}", "{user: orders}"),
        live=("user=orders producer_byte_rate=104857600",),
    ),
    "live-value-changes-meaning": Example(
        bad=entry(_ONE, "{user: orders}"),
        good=entries(("{user: orders}", _ONE), ("{user: batch}", _ONE)),
        live=("user=batch producer_byte_rate=0",),
    ),
    "migrated-name": Example(
        bad=entry(_ONE, "{user: orders@example}"),
        good=stream(cluster(prune="confirm"), entry(_ONE, "{user: orders@example}")),
        live=("user=orders%40example producer_byte_rate=1048576",),
    ),
}
"""By rule id."""
