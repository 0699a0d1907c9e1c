"""The page of everything that has an id: findings, guards and classes of drift, from the catalogue that ``explain`` prints."""

from __future__ import annotations

from typing import Final

from reconciler.model.explanation import Explanation, Topic
from reconciler.workflows.explain import explanations

_HEAD: Final = """\
# Ids of findings, guards and drift

Every message has an id in `[brackets]`. `kafka-quotas explain ID` says the same as this page.
"""
_CHAPTERS: Final = {
    Topic.FINDING: "## Findings\n\nThe severity of those marked *adjustable* can be set in the Repository document:\n"
    "`spec: {lint: {ID: error|warning|info|off}}`.\n",
    Topic.GUARD: "## Guards\n\nA guard that trips is accepted for one run with `--accept ID`, or in the Cluster document under\n"
    "`spec.accept`.\n",
    Topic.DRIFT: "## Classes of drift\n",
}


def catalogue_page() -> str:
    """Markdown, a chapter a topic, the ids in alphabetical order."""
    every = sorted(explanations().values(), key=lambda one: one.id)
    parts = []
    for topic, heading in _CHAPTERS.items():
        parts += [heading, *(_entry(one) for one in every if one.topic is topic)]
    return "\n".join((_HEAD, *parts))


def _entry(one: Explanation) -> str:
    parts = [f"### {one.id}\n"]
    if one.severity is not None:
        parts.append(f"*{one.severity.value}{', adjustable' if one.adjustable else ''}*\n")
    parts.append(f"{one.text}\n")
    if one.example is not None:
        language = "sh" if one.example.commands else "yaml"
        if one.example.live:
            parts.append("On the cluster:\n\n" + _block("text", "\n".join(one.example.live)))
        parts += ["Wrong:\n\n" + _block(language, one.example.bad), "Right:\n\n" + _block(language, one.example.good)]
    return "\n".join(parts)


def _block(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````\n"
