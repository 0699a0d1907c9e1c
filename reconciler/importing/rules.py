"""The findings of an import that no manifest has, with an example for each: commands that make a file, and convert it.

Wrong names and values have the ids that they have in manifests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import Example, Rule, Severity

_GOOD: Final = "--entity-type users --entity-name orders --add-config producer_byte_rate=1048576"
_SPEC: Final = "spec: {type: CLIENT, entity: {clientId: orders}, configs: {producerByteRate: 1048576}}"


def _rule(rule_id: str, explanation: str, severity: Severity = Severity.ERROR) -> tuple[str, Rule]:
    return rule_id, Rule(id=rule_id, severity=severity, explanation=explanation)


IMPORT_RULES: Final[Mapping[str, Rule]] = dict(
    (
        _rule(
            "import-template",
            "An entity or a value of another tool's file is a template: a variable, a function, a loop, a condition. What it "
            "comes to is known where that tool runs, not here, and it is never guessed. Let the tool itself print the result "
            "(terraform show -json, jikkou's rendered resources, kafka-configs --describe), and import that.",
        ),
        _rule(
            "import-unsupported",
            "Something in another tool's file has no counterpart among Kafka's client quotas, or is in a form that is not read. "
            "Nothing of the entry is converted, because half an entity would be another quota.",
        ),
        _rule(
            "import-ambiguous",
            "A file can be read in two ways that lead to different quotas, or the tool itself would not do what the file seems "
            "to mean. Write in the other tool's file what is meant, or write the manifest by hand.",
        ),
        _rule(
            "import-syntax",
            "A file is not of the tool --from, or has a fault of syntax. What comes after the fault is unread, so nothing of the "
            "file is converted.",
        ),
        _rule(
            "import-nothing-found",
            "A file that was named has no quota. Most often it is the wrong file, or --from names the wrong tool.",
        ),
        _rule(
            "import-left-out",
            "Something was left out on purpose, because it declares no quota: a resource marked for deletion, an entity whose "
            "last key is deleted, credentials that stand beside quotas. It does not count as unconverted.",
            Severity.INFO,
        ),
    )
)
"""All of them by id."""


def _file(name: str, *lines: str) -> str:
    texts = " ".join(f"'{line}'" for line in lines)
    return f"printf '%s\\n' {texts} > {name}"


def _import(tool: str, name: str) -> str:
    return f"kafka-quotas import --from {tool} {name} --folder quotas"


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
