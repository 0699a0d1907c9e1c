"""Explanations for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import Example, Explanation, Topic
from reconciler.render.styled import Line, Style, line

_WIDTH: Final = 100
_ONE_OF: Final = {Topic.FINDING: "finding", Topic.GUARD: "guard", Topic.DRIFT: "class of drift"}
_TOPICS: Final = {Topic.FINDING: "Findings", Topic.GUARD: "Guards", Topic.DRIFT: "Classes of drift"}


def explanation_lines(one: Explanation) -> tuple[Line, ...]:
    """The whole of one: heading, reason, example."""
    return tuple(_lines(one))


def _lines(one: Explanation) -> Iterator[Line]:
    yield line((one.id, Style.STRONG), f" ({_kind(one)})")
    yield line()
    yield from (line(text) for text in textwrap.wrap(one.text, _WIDTH))
    if one.topic is Topic.GUARD:
        yield line()
        yield line(f"Accept it for one run with --accept {one.id}, or in the Cluster document under spec.accept.")
    elif one.adjustable:
        yield line()
        yield line("A repository sets another severity in kafka-quotas.yaml:")
        yield line(f"    spec: {{lint: {{{one.id}: error|warning|info|off}}}}")
    if one.example is not None:
        yield from _example(one.example)


def _kind(one: Explanation) -> str:
    return f"{one.topic.value}, {one.severity.value}" if one.severity else _ONE_OF[one.topic]


def _example(example: Example) -> Iterator[Line]:
    if example.live:
        yield line()
        yield line(("On the cluster:", Style.FAINT))
        yield from (line(f"    {text}") for text in example.live)
    for heading, text in (("Wrong:", example.bad), ("Right:", example.good)):
        yield line()
        yield line((heading, Style.BAD if heading == "Wrong:" else Style.GOOD))
        yield from (line(f"    {row}") for row in text.splitlines())


def index_lines(every: Sequence[Explanation]) -> tuple[Line, ...]:
    """Every id with its severity and the beginning of its reason, by topic."""
    width = max((len(one.id) for one in every), default=0)
    lines: list[Line] = []
    for topic, heading in _TOPICS.items():
        chosen = [one for one in every if one.topic is topic]
        if chosen:
            lines += [line()] if lines else []
            lines.append(line((heading, Style.STRONG)))
            lines += [_row(one, width) for one in chosen]
    return tuple(lines)


def _row(one: Explanation, width: int) -> Line:
    severity = f"{one.severity.value:<9}" if one.severity else ""
    return line(f"  {one.id:<{width}}  {severity}", (textwrap.shorten(one.text, 90, placeholder=" ..."), Style.FAINT))
