"""``spec.brokerSettings`` and ``spec.quotaCallback`` of a Cluster document: how its brokers go about quotas."""

from __future__ import annotations

from typing import Final

from reconciler.manifest.fields import mapping, text
from reconciler.model import CallbackClass
from reconciler.resolution import BROKER_SETTINGS
from reconciler.yaml import YamlMapping, YamlScalar

_LEAST: Final = 1


def broker_settings(node: YamlMapping | None) -> dict[str, int]:
    """Those that are written; what the schema refused is as if it were not."""
    found = {}
    for name in BROKER_SETTINGS:
        value = node.items.get(name) if node else None
        data = value.data if isinstance(value, YamlScalar) else None
        # To JSON Schema 11.0 is an integer, too.
        if isinstance(data, int | float) and not isinstance(data, bool) and data >= _LEAST and data == int(data):
            found[name] = int(data)
    return found


def quota_callback(node: YamlMapping | None) -> CallbackClass | None:
    """The class and its options, nothing of which is looked for here."""
    name, options = text(node, "class"), mapping(node, "options")
    if name is None:
        return None
    written = options.items if options else {}
    return CallbackClass(
        name=name, options={key: v.text for key, v in written.items() if isinstance(v, YamlScalar) and v.data is not None}
    )
