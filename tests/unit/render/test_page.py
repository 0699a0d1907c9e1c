"""The HTML page: everything in one file that loads nothing, readable without a mouse, on paper and on a telephone."""

from __future__ import annotations

import re

from reconciler.model.finding import Finding, Related, Severity
from reconciler.model.plan import Action, Change, GuardResult, GuardStatus, KeyChange, ManifestCommit, Reason, Summary
from reconciler.render.backtest_text import backtest_view
from reconciler.render.findings_text import findings_view
from reconciler.render.html_page import policy, view_html
from reconciler.render.plan_text import plan_view
from tests.builders import plan, span, user
from tests.support.backtest_reports import full
from tests.support.markdown_views import Seen, seen

KEYS = (
    KeyChange(
        key="consumer_byte_rate", before=1024.0, after=None, reason=Reason.KEY_NOT_IN_MANIFEST, source=span(8, "a.yaml", 7)
    ),
    KeyChange(key="producer_byte_rate", before=2048.0, after=1024.0, reason=Reason.VALUE_DIFFERS, source=span(9, "a.yaml", 7)),
)
PLAN = plan(
    Change(entity=user("<b>bob</b>"), action=Action.UPDATE, keys=KEYS, note="why & wherefore"),
    summary=Summary(update=1, unchanged=4),
    guards=tuple(
        GuardResult(id=f"guard-{s.value}", status=s, measured="2", limit="1", set_in="built in", message="why")
        for s in GuardStatus
    ),
    notes=("a note",),
    findings=(
        Finding(id="info-rule", severity=Severity.INFO, message="small"),
        Finding(
            id="bad-rule",
            severity=Severity.ERROR,
            message="large",
            span=span(3),
            related=(Related(span=span(4), message="see here"),),
        ),
    ),
    source=ManifestCommit(commit="1a2b3c4", dirty=True),
    complete=False,
)


def page(text: str) -> Seen:
    assert text.startswith("<!DOCTYPE html>\n")
    return seen(text.removeprefix("<!DOCTYPE html>\n"))


def test_the_policy_forbids_the_browser_to_load_or_run_anything() -> None:
    views = (plan_view(PLAN), findings_view(PLAN.findings), backtest_view(full(), page=True))
    for text in map(view_html, views):
        found = page(text)
        assert ("meta", "content", policy()) in found.attributes
        assert "unsafe" not in policy()
        assert not {"link", "img", "iframe", "object", "base", "embed", "use", "image", "foreignobject"} & set(found.elements)
        assert found.elements.count("script") <= 1
        assert all(value.startswith("#") for _, key, value in found.attributes if key in ("href", "src", "action") and value)
        assert not re.search(r"https?://|@import|url\(|src=|[^-]style=|onclick", text)


def test_the_table_has_a_row_a_key_and_the_note_once() -> None:
    rows = page(view_html(plan_view(PLAN))).rows
    assert rows == [
        ["Entity", "Effect", "Key", "Change", "Remark", "Declared at"],
        ['user="<b>bob</b>"', "removed", "consumer_byte_rate", "1 KiB/s → not set", "the manifest does not set it", "a.yaml:8:7"],
        ['user="<b>bob</b>"', "tightens", "producer_byte_rate", "2 KiB/s → 1 KiB/s", "x0.5", "a.yaml:9:7note: why & wherefore"],
    ]
