"""An example for every finding of an import: commands that make a file of another tool, and convert it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import Example


def _file(name: str, *lines: str) -> str:
    texts = " ".join(f"'{line}'" for line in lines)
    return f"printf '%s\\n' {texts} > {name}"


def _import(tool: str, name: str) -> str:
    return f"kafka-quotas import --from {tool} {name} --out quotas"


def _script(bad: str, good: str) -> Example:
    line = "kafka-configs.sh --bootstrap-server b1:9092 --alter {}"
    check = _import("kafka-configs", "quotas.sh")
    return Example(
        bad=f"{_file('quotas.sh', line.format(bad))}\n{check}",
        good=f"{_file('quotas.sh', line.format(good))}\n{check}",
        commands=True,
    )


def _jikkou(bad: str, good: str) -> Example:
    head = ("apiVersion: kafka.jikkou.io/v1beta2", "kind: KafkaClientQuota")
    check = _import("jikkou", "quotas.yaml")
    return Example(
        bad=f"{_file('quotas.yaml', *head, bad)}\n{check}", good=f"{_file('quotas.yaml', *head, good)}\n{check}", commands=True
    )


_GOOD: Final = "--entity-type users --entity-name orders --add-config producer_byte_rate=1048576"
_SPEC: Final = "spec: {type: CLIENT, entity: {clientId: orders}, configs: {producerByteRate: 1048576}}"

EXAMPLES: Final[Mapping[str, Example]] = {
    "import-template": _script(_GOOD.replace("orders", "$APP"), _GOOD),
    "import-unsupported": _jikkou(_SPEC.replace("producerByteRate", "controllerMutationRate"), _SPEC),
    "import-ambiguous": _script(_GOOD.replace(" --entity-name orders", ""), _GOOD),
    "import-syntax": _jikkou(_SPEC.replace("spec: ", "spec: []  # "), _SPEC),
    "import-nothing-found": Example(
        bad=f"{_file('quotas.sh', 'kafka-topics.sh --list')}\n{_import('kafka-configs', 'quotas.sh')}",
        good=f"{_file('quotas.sh', f'kafka-configs.sh --alter {_GOOD}')}\n{_import('kafka-configs', 'quotas.sh')}",
        commands=True,
    ),
    "import-left-out": _jikkou(f"metadata: {{annotations: {{jikkou.io/delete: true}}}}\n{_SPEC}", _SPEC),
}
"""By rule id."""
