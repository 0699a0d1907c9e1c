"""Pages lead to the lines of manifests where the repository's address is known, and nowhere else."""

from __future__ import annotations

import re

import pytest

from reconciler.model import Action, Change, Finding, KeyChange, Reason, Severity, Span
from reconciler.render import RepositoryLinks
from reconciler.render.findings_text import findings_view
from reconciler.render.html_page import view_html
from reconciler.render.plan_text import plan_view
from tests.builders import plan, span, user

FILES = "https://github.example/team/quotas/blob/1a2b3c4"


def finding(file: str) -> Finding:
    return Finding(id="user-prefix", severity=Severity.WARNING, message="A prefix.", span=Span(file=file, line=3, column=5))


def test_a_place_is_a_link_to_its_line() -> None:
    text = view_html(findings_view([finding('teams/a "b".yaml')]), RepositoryLinks(files=FILES))
    assert f'<a href="{FILES}/teams/a%20%22b%22.yaml#L3"><code>' in text


@pytest.mark.parametrize(
    ("file", "files"), [("teams/a.yaml", None), ("/etc/passwd", FILES), ("a.yaml", "javascript:alert(1)//"), ("a.yaml", "x")]
)
def test_without_a_plain_address_a_place_is_text(file: str, files: str | None) -> None:
    text = view_html(findings_view([finding(file)]), RepositoryLinks(files=files))
    assert re.findall("<a [^>]*href=.([^'#\"]+)", text) == []


def test_the_page_of_a_plan_links_each_change() -> None:
    key = KeyChange(key="producer_byte_rate", before=1024.0, after=2048.0, reason=Reason.VALUE_DIFFERS, source=span(8))
    changed = plan(Change(entity=user("payments"), action=Action.UPDATE, keys=(key,)))
    with_links, without = view_html(plan_view(changed), RepositoryLinks(files=FILES)), view_html(plan_view(changed))
    assert with_links.count(f'<a href="{FILES}/{span(8).file}#L8"') == 1
    assert FILES not in without
