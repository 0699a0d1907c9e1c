"""The page of a report: self-contained, everything of strangers escaped, and the same data as the JSON document."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from reconciler.features.insight import report_page
from reconciler.features.insight.report import Overview
from reconciler.features.insight.report_page import embedded, report_html
from reconciler.render.html_page import page_script, policy
from tests.support import report_world
from tests.support.markdown_views import Seen, seen

COMPANY = report_world.company()
PAGE_JS = str(Path(report_page.__file__).parent / "page")
SCRIPT = page_script(PAGE_JS)


def page(overview: Overview) -> Seen:
    text = report_html(overview)
    assert text.startswith("<!DOCTYPE html>\n")
    return seen(text.removeprefix("<!DOCTYPE html>\n"))


def rows_under(overview: Overview, place: str) -> list[list[str]]:
    """The rows of the tables of one section."""
    (section,) = re.findall(rf'<section id="{place}".*?</section>', report_html(overview), re.DOTALL)
    return seen(section).rows


def test_the_policy_allows_this_script_and_this_style_and_nothing_else() -> None:
    text = report_html(COMPANY)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (script, style)]
    wanted = (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert policy(PAGE_JS) == wanted
    assert ("meta", "content", wanted) in page(COMPANY).attributes
    assert "unsafe" not in wanted


@pytest.mark.parametrize("overview", [COMPANY, report_world.hostile()], ids=["company", "hostile"])
def test_nothing_leads_out_of_the_file(overview: Overview) -> None:
    found = page(overview)
    assert not {"link", "img", "iframe", "object", "base", "embed", "image", "use"} & set(found.elements)
    assert found.elements.count("script") == 2
    leading = [value for _, name, value in found.attributes if name in ("href", "src", "action", "srcset", "xlink:href")]
    assert leading
    assert all(value is not None and value.startswith("#") for value in leading)
    assert {value for element, name, value in found.attributes if element == "script" and name != "id"} == {"application/json"}
    assert not [name for _, name, _ in found.attributes if name.startswith("on") or name == "style"]


def test_the_script_and_the_style_load_nothing() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", report_html(COMPANY), re.DOTALL)
    assert "url(" not in style
    for word in ("@import", "http:", "https:"):
        assert word not in style
        assert word not in SCRIPT
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "import(", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("):
        assert word not in SCRIPT
    assert "</script" not in SCRIPT.lower()


def test_names_of_strangers_are_text_and_every_mark_that_does_not_print_is_an_escape() -> None:
    text = report_html(report_world.hostile())
    found = seen(text.removeprefix("<!DOCTYPE html>\n"))
    assert found.elements.count("h1") == 1
    assert found.comments == []
    outside = text.replace(SCRIPT, "")
    assert all(one.isprintable() or one == "\n" for one in outside)
    assert "\\u202eevil" in found.outside("script", "style")


def test_the_embedded_data_cannot_end_their_element() -> None:
    data = embedded(report_world.hostile())
    assert data.isascii()
    assert not set("<>&\n") & set(data)
    assert "\\u003c/table\\u003e" in data
    assert "\\u2028" in data


def test_the_embedded_rows_have_what_differs_between_the_sides() -> None:
    eu = json.loads(embedded(COMPANY))["clusters"][0]
    rows = {row["name"]: row for row in eu["entities"]}
    assert rows["user=payments-api client-id=settlement"] == {
        "name": "user=payments-api client-id=settlement",
        "state": "differs",
        "declared": {"producer_byte_rate": "50 MiB/s"},
        "live": {"producer_byte_rate": "30 MiB/s"},
        "owner": "team-payments",
        "place": "quotas.yaml:14",
        "tags": ["protected"],
    }
    assert rows["user=<default>"]["live"] is True
    assert "declared" not in rows["client-id=mirror-maker"]
    assert {'user="<default>"', "user=<default>", "client-id=<default>"} <= rows.keys()


def test_clusters_have_a_row_each_and_one_that_was_not_read_says_so() -> None:
    heads, eu, us, staging = rows_under(COMPANY, "clusters")
    assert dict(zip(heads, eu, strict=True)) == {
        "Cluster": "prod-eu, id-of-prod-eu, Kafka 4.3",
        "State": "differs",
        "Declared": "9",
        "Live": "10",
        "In sync": "6",
        "Differences": "3 differ",
        "Unmanaged": "2",
        "Read": "2026-01-02 12:00 UTC, from its brokers",
    }
    assert (us[1], us[5]) == ("in sync", "none")
    assert staging[:8] == ["staging", "could not be read", "4", "?", "?", "?", "?", ""]
    text = page(COMPANY).outside("script", "style")
    assert "staging: no Kafka broker can be reached (b1.staging:9092: connection refused) (unreachable)" in text
    assert "1 cluster could not be read, 1 cluster differs from the manifests, 1 cluster has what the manifests declare." in text
