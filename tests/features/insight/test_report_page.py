"""The page of a report: self-contained, everything of strangers escaped, the data of the JSON document, and what is in doubt."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.features.insight import report_page
from reconciler.features.insight.report import ClusterOverview, EntityOverview, Overview, overview_of
from reconciler.features.insight.report_page import embedded, report_html
from reconciler.model.cluster import CallbackClass
from reconciler.model.drift import DriftClass
from reconciler.render.html_page import page_script, policy
from reconciler.resolution.reserved_users import GROUP_CALLBACK
from tests.builders import cluster_spec, current, declared, user
from tests.fakes import FakeCluster, WithCallback
from tests.support import report_world
from tests.support.markdown_views import Seen, seen
from tests.support.report_world import intent

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


def by_name(cluster: ClusterOverview) -> dict[str, EntityOverview]:
    return {str(one.entity): one for one in cluster.entities}


def test_of_some_manifests_alone_the_rest_of_the_cluster_is_not_compared() -> None:
    whole = intent("c", declared(user("a"), producer_byte_rate=1.0))
    part = replace(whole, desired=replace(whole.desired, complete=False))
    live = {user("a"): {"producer_byte_rate": 1.0}, user("b"): {"producer_byte_rate": 2.0}}
    found = overview_of(part, current(live), source=FakeCluster(live))
    assert {name: one.drift for name, one in by_name(found).items()} == {"user=a": DriftClass.IN_SYNC, "user=b": None}
    assert not found.complete


def test_quotas_that_brokers_resolve_in_their_own_way_are_in_doubt() -> None:
    found = overview_of(intent("c"), current({}), source=WithCallback("com.example.Quotas"))
    assert found.callback is not None
    assert "com.example.Quotas" in found.callback
    assert overview_of(intent("c"), current({}), source=FakeCluster()).callback is None


def test_limits_of_clients_are_in_doubt_where_the_brokers_have_the_plugin_of_groups() -> None:
    wanted = intent("c")
    written = replace(wanted, spec=cluster_spec(name="c", callback=CallbackClass(name=GROUP_CALLBACK)))
    assert "this page does not resolve groups" in (overview_of(written, current({}), source=FakeCluster()).callback or "")
