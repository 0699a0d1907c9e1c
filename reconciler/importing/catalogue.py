"""The findings of an import that no manifest has; wrong names and values have the ids that they have in manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import Rule, Severity


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
            "to say. Write in the other tool's file what is meant, or write the manifest by hand.",
        ),
        _rule(
            "import-syntax",
            "A file is not what --from says, or has a fault of syntax. What comes after the fault is unread, so nothing of the "
            "file is converted.",
        ),
        _rule(
            "import-nothing-found",
            "A file that was named holds no quota. Most often it is the wrong file, or --from names the wrong tool.",
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
