"""One catalogue of everything that has an id: findings, guards and classes of drift, each with its reason and an example."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from reconciler.errors import FileAccessError, UsageError
from reconciler.files import bundled_folder
from reconciler.model import Explanation, Topic, catalogue_tables, example_of, rules
from reconciler.policy import GUARDS
from reconciler.text import near_miss, shown


def explanations() -> Mapping[str, Explanation]:
    """Return every explanation by id: findings in the order of their catalogues, then guards, then classes of drift."""
    tables = catalogue_tables()
    examples = {rule_id: example_of(row) for table in tables.values() for rule_id, row in table.items()}
    by_id: dict[str, Explanation] = {}
    for rule in rules("file", "manifest", "lint", "result").values():
        by_id[rule.id] = Explanation(
            id=rule.id,
            topic=Topic.FINDING,
            text=rule.explanation,
            severity=rule.severity,
            adjustable=rule.adjustable,
            example=examples.get(rule.id),
        )
    for guard_id, measure in GUARDS.items():
        text = inspect.cleandoc(measure.__doc__ or "").replace("\n", " ").replace("``", "")
        by_id[guard_id] = Explanation(id=guard_id, topic=Topic.GUARD, text=text, example=examples.get(guard_id))
    for name, row in tables["drift"].items():
        by_id[name] = Explanation(id=name, topic=Topic.DRIFT, text=" ".join(row["text"].split()))
    return by_id


def page_names() -> tuple[str, ...]:
    """The pages of the documentation, sorted; none where the installation has none."""
    try:
        return tuple(sorted(path.stem for path in bundled_folder("docs", with_file="index.md").glob("*.md")))
    except FileAccessError:
        return ()


def explain_id(topic_id: str) -> Explanation:
    """The explanation of a finding, guard or class of drift, or a page by its name. Raises ``UsageError`` for an unknown id."""
    by_id = explanations()
    if topic_id in by_id:
        return by_id[topic_id]
    pages = page_names()
    if topic_id not in pages:
        near = near_miss(topic_id, (*by_id, *pages)) or ". Run kafka-quotas explain for a list"
        raise UsageError(f"unknown id {shown(topic_id)}{near}")
    text = (bundled_folder("docs", with_file="index.md") / f"{topic_id}.md").read_text(encoding="utf-8")
    return Explanation(id=topic_id, topic=Topic.PAGE, text=text)
