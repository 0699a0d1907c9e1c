"""The pages of everything that has an id: findings, guards and classes of drift, from the catalogue that ``explain`` prints."""

from __future__ import annotations

from typing import Final

from reconciler.model import Explanation, Topic
from reconciler.workflows.explain import explanations

_HEAD: Final = """\
# Message ids

Every message has an id in `[brackets]`. Each id has a page here, with what to write instead.

```sh
kafka-quotas explain large-reduction
```

prints the same on your terminal.
"""
_CHAPTERS: Final = {
    Topic.FINDING: "## Findings\n\nSet the severity of those marked *adjustable* in the Repository manifest:\n"
    "`spec: {lint: {ID: error|warning|info|off}}`.\n",
    Topic.GUARD: "## Guards\n\nA guard that trips stops the plan before anything is written. [How to proceed](../guards.md).\n",
    Topic.DRIFT: "## Classes of drift\n\nHow `drift` classifies an entity that is not as declared.\n",
}
_KINDS: Final = {
    Topic.FINDING: "Finding",
    Topic.GUARD: "Guard. Accept it for one run with `--accept {id}`, or in the Cluster manifest under `spec.accept`.",
    Topic.DRIFT: "Class of drift.",
}

_ORPHAN: Final = "---\norphan: true\n---\n"
"""The list and the search lead to these pages. In the navigation of every page they would be two thirds of its lines."""


def catalogue_pages() -> dict[str, str]:
    """Markdown by path: the list of all ids, and a page for each."""
    entries = sorted(explanations().values(), key=lambda one: one.id)
    parts = [_HEAD]
    for topic, heading in _CHAPTERS.items():
        parts += [heading, *(_item(one) for one in entries if one.topic is topic)]
    return {"ids.md": "\n".join(parts), **{f"ids/{one.id}.md": _page(one) for one in entries}}


def _item(one: Explanation) -> str:
    first = one.text.split(". ")[0].removesuffix(".")
    severity = f"*{_severity(one)}.* " if one.severity else ""
    return f"[{one.id}](ids/{one.id}.md)\n: {severity}{first}.\n"


def _severity(one: Explanation) -> str:
    return f"{one.severity}{', adjustable' if one.adjustable else ''}"


def _page(one: Explanation) -> str:
    kind = _KINDS[one.topic].format(id=one.id)
    if one.severity is not None:
        kind += f" of severity *{one.severity.value}*." + (
            f" Change it in the Repository manifest: `spec: {{lint: {{{one.id}: off}}}}`." if one.adjustable else ""
        )
    parts = [_ORPHAN, f"# {one.id}\n", f"{one.text}\n", f"{kind}\n"]
    if one.example is not None:
        language = "sh" if one.example.commands else "yaml"
        parts.append("## Example\n")
        if one.example.live:
            parts.append("On the cluster:\n\n" + _block("text", "\n".join(one.example.live)))
        parts += ["Wrong:\n\n" + _block(language, one.example.bad), "Right:\n\n" + _block(language, one.example.good)]
    parts.append("[All ids](../ids.md)\n")
    return "\n".join(parts)


def _block(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````\n"
