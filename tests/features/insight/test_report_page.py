"""The page of a report: self-contained, everything of strangers escaped, and the same data as the JSON document."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reconciler.features.insight.report.document import overview_to_json
from reconciler.model import Form
from reconciler.model.cluster import Scope
from reconciler.model.cluster_outcome import ClusterFailure
from reconciler.model.drift import DriftClass
from reconciler.model.overview import ClusterOverview, Overview
from reconciler.model.selector import MatchKind, Selector, TypeMatch
from reconciler.model.state import ClusterIdentity
from reconciler.render.html_page import MOST_ROWS, page_script, policy
from reconciler.render.report_page import OUT_OF_SCOPE, PROTECTED, SCRIPTS, embedded, overview_lines, report_html
from reconciler.render.report_page_sections import bar
from reconciler.render.terminal import plain
from tests.builders import DEFAULT, client, declared, ip, pair, user
from tests.support import report_world
from tests.support.markdown_views import Seen, seen

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "report.v2.schema.json").read_text("utf-8"))
COMPANY = report_world.company()


def page(overview: Overview) -> Seen:
    text = report_html(overview)
    assert text.startswith("<!DOCTYPE html>\n")
    return seen(text.removeprefix("<!DOCTYPE html>\n"))


def rows_under(overview: Overview, place: str) -> list[list[str]]:
    """The rows of the tables of one section."""
    (section,) = re.findall(rf'<section id="{place}".*?</section>', report_html(overview), re.DOTALL)
    return seen(section).rows


def document(overview: Overview) -> dict[str, Any]:
    found = json.loads(json.dumps(overview_to_json(overview)))
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(found)
    return dict(found)


def test_the_policy_allows_this_script_and_this_style_and_nothing_else() -> None:
    text = report_html(COMPANY)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (script, style)]
    wanted = (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert policy(*SCRIPTS) == wanted
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
    assert re.findall(r"url\(([^)]*)\)", style) == ["#maybe"], "a pattern of the page itself"
    for word in ("@import", "http:", "https:"):
        assert word not in style
        assert word not in page_script(*SCRIPTS)
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "import(", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("):
        assert word not in page_script(*SCRIPTS)
    assert "</script" not in page_script(*SCRIPTS).lower()


def test_names_of_strangers_are_text_and_every_mark_that_does_not_print_is_an_escape() -> None:
    text = report_html(report_world.hostile())
    found = seen(text.removeprefix("<!DOCTYPE html>\n"))
    assert found.elements.count("h1") == 1
    assert found.comments == []
    outside = text.replace(page_script(*SCRIPTS), "")
    assert all(one.isprintable() or one == "\n" for one in outside)
    assert "\\u202eevil" in found.outside("script", "style")


def test_the_embedded_data_cannot_end_their_element() -> None:
    data = embedded(report_world.hostile())
    assert data.isascii()
    assert not set("<>&\n") & set(data)
    assert "\\u003c/table\\u003e" in data
    assert "\\u2028" in data


def decoded(overview: Overview) -> list[list[dict[str, Any]]]:
    """The embedded rows, read by what the module says of them."""
    read = json.loads(embedded(overview))
    clusters = []
    for cluster in read["clusters"]:
        rows = []
        for row in cluster["rows"]:
            padded: list[Any] = list(row) + [0] * (10 - len(row))
            entity, drift, declared_, live, owner, file, line, note, flags, baseline = padded

            def quotas(flat: Any, keys: list[str] = cluster["keys"]) -> dict[str, Any] | None:
                return dict(zip((keys[n] for n in flat[::2]), flat[1::2], strict=True)) if isinstance(flat, list) else None

            names = zip(entity[::2], entity[1::2], strict=True)
            rows.append(
                {
                    "entity": {cluster["types"][t]: None if name == 0 else name for t, name in names},
                    "class": None if drift < 0 else read["classes"][drift],
                    "declared": quotas(declared_),
                    "live": quotas(declared_ if live == 1 else live),
                    "baseline": quotas(baseline),
                    "owner": cluster["owners"][owner - 1] if owner else None,
                    "note": note or None,
                    "file": cluster["files"][file - 1] if file else None,
                    "line": line or None,
                    "protected": bool(flags & PROTECTED),
                    "in_scope": not flags & OUT_OF_SCOPE,
                }
            )
        clusters.append(rows)
    return clusters


@pytest.mark.parametrize(
    "overview", [COMPANY, report_world.hostile(), report_world.large(300)], ids=["company", "hostile", "large"]
)
def test_the_page_holds_the_entities_of_the_json_document(overview: Overview) -> None:
    wanted = [
        [
            {
                **{key: value for key, value in one.items() if key != "source"},
                "file": one["source"]["file"] if one["source"] else None,
                "line": one["source"]["line"] if one["source"] else None,
            }
            for one in cluster["entities"]
        ]
        for cluster in document(overview)["clusters"]
    ]
    assert decoded(overview) == wanted


def test_values_that_json_has_no_numbers_for_are_text_on_the_page_and_in_the_document() -> None:
    live = {user("a"): {"producer_byte_rate": float("nan"), "consumer_byte_rate": float("inf")}}
    overview = report_world.overview(report_world.cluster_of("c", (), live))
    assert decoded(overview)[0][0]["live"] == {"producer_byte_rate": "NaN", "consumer_byte_rate": "Infinity"}
    document(overview)


@pytest.mark.parametrize(
    ("prune", "complete", "prunes"),
    [("never", True, False), ("confirm", True, True), ("always", True, True), ("always", False, False), (None, True, False)],
)
def test_what_the_next_apply_would_prune_is_only_assumed_of_a_cluster_that_prunes(
    prune: str | None, complete: bool, prunes: bool
) -> None:
    one = replace(COMPANY.clusters[0], prune=prune, complete=complete)
    assert json.loads(embedded(report_world.overview(one)))["clusters"][0]["prunes"] is prunes


def test_the_default_the_literal_default_and_an_absent_type_are_three_things() -> None:
    live = {
        entity: {"producer_byte_rate": 1.0} for entity in (user(), user("<default>"), pair(DEFAULT, "<default>"), client(DEFAULT))
    }
    rows = decoded(report_world.overview(report_world.cluster_of("c", (), live)))[0]
    assert [row["entity"] for row in rows] == [
        {"user": "<default>"},
        {"user": None},
        {"user": None, "client-id": "<default>"},
        {"client-id": None},
    ]


def test_clusters_have_a_row_each_and_one_that_was_not_read_says_so() -> None:
    heads, eu, us, staging = rows_under(COMPANY, "clusters")
    assert dict(zip(heads, eu, strict=True)) == {
        "Cluster": "prod-euid-of-prod-eu, Kafka 4.3",
        "State": "differs",
        "Declared": "9",
        "Live": "10",
        "In sync": "6",
        "Differences": "1 not applied1 changed by hand1 removed by hand1 added",
        "Unmanaged": "1",
        "Read": "2026-01-02 12:00 UTC, from its brokers",
        "Last run": "2026-01-02 11:30 UTC, refused",
    }
    assert (us[1], us[5]) == ("in sync", "none")
    assert staging[:8] == ["staging", "could not be read", "4", "?", "?", "?", "?", ""]
    text = page(COMPANY).outside("script", "style")
    assert "Could not be read no Kafka broker can be reached (b1.staging:9092: connection refused) (unreachable)" in text
    assert "1 cluster could not be read, 1 cluster differs from the manifests, 1 cluster has what the manifests declare." in text


def test_a_skipped_cluster_is_told_from_one_that_failed() -> None:
    identity = ClusterIdentity(name="new")
    failure = ClusterFailure(cluster=identity, failure_reason="untrusted", message="merge it first", skipped=True)
    overview = report_world.overview(ClusterOverview(cluster=identity, failure=failure))
    assert rows_under(overview, "clusters")[1][1] == "skipped"
    assert "1 cluster skipped." in page(overview).outside("script", "style")


def test_differences_tell_both_sides_and_the_place() -> None:
    found = rows_under(COMPANY, "differences")
    assert found == [
        ["Entity", "Cluster", "State", "Declared", "Live", "Owner", "Declared at"],
        ['user="<default>"', "prod-eu", "added", "nothing", "producer_byte_rate 512 B/s", "", ""],
        [
            "user=payments-api client-id=settlement",
            "prod-eu",
            "changed by hand protected",
            "producer_byte_rate 50 MiB/s",
            "producer_byte_rate 30 MiB/s",
            "team-payments",
            "quotas.yaml:14",
        ],
        [
            "user=reporting",
            "prod-eu",
            "removed by hand",
            "consumer_byte_rate 16 MiB/s",
            "nothing",
            "team-analytics",
            "quotas.yaml:8",
        ],
        [
            "user=search-indexer",
            "prod-eu",
            "not applied",
            "consumer_byte_rate 80 MiB/s",
            "consumer_byte_rate 60 MiB/s",
            "team-search",
            "quotas.yaml:4",
        ],
    ]


def test_without_a_baseline_the_page_says_what_it_cannot_tell() -> None:
    without = report_world.overview(report_world.cluster_of("c", report_world.EU_DECLARED, report_world.EU_LIVE))
    assert "No baseline was given" in report_html(without)
    assert "No baseline was given" not in report_html(COMPANY)


def test_runs_are_the_latest_first_and_what_is_missing_is_said() -> None:
    rows = rows_under(COMPANY, "runs")
    assert [row[0] for row in rows[1:]] == [
        "2026-01-02 11:30 UTC",
        "2026-01-02 10:30 UTC",
        "2026-01-02 07:00 UTC",
        "2026-01-01 02:40 UTC",
    ]
    assert rows[4][3:7] == [
        "partial (unreachable) not verified",
        "2 applied, 1 unknown",
        "quota-admin (ci)",
        "0123456789ab with uncommitted changes",
    ]
    nothing = report_world.overview(COMPANY.clusters[1])
    assert "No audit file was given" in report_html(nothing)
    assert "The audit file has no run." in report_html(replace(nothing, audited=True))
    assert document(nothing)["runs"] is None
    assert document(replace(nothing, audited=True))["runs"] == []


def test_traffic_has_a_bar_a_share_and_a_verdict_for_each_quota_group() -> None:
    rows = rows_under(COMPANY, "traffic")
    assert [(row[0], row[1], row[3]) for row in rows[1:]] == [
        ("user reporting", "throttled", "144 %"),
        ("user payments-api", "possible", "90 %"),
        ("user search-indexer", "clear", "50 %"),
        ("user mirror", "clear", ""),
    ]
    assert rows[4][5] == "unlimited, before unlimited"
    assert report_html(COMPANY).count("<svg") == 3


def test_limits_of_before_that_are_not_known_are_not_called_unlimited() -> None:
    unknown = replace(COMPANY, traffic=(replace(COMPANY.traffic[0], current_known=False),))
    assert [row[5] for row in rows_under(unknown, "traffic")[1:]] == [
        "16 MiB/s",
        "20 MiB/s",
        "80 MiB/s",
        "unlimited",
    ]


def test_a_peak_of_whole_seconds_is_told_as_a_bound() -> None:
    words = "a peak is what no request can have exceeded"
    assert words in report_html(COMPANY)
    assert words not in report_html(replace(COMPANY, traffic=(replace(COMPANY.traffic[0], form=Form.EXACT),)))


@pytest.mark.parametrize(
    ("share", "width", "over"),
    [(0.0, 0.0, False), (0.75, 37.5, False), (1.0, 50.0, False), (1.25, 60.0, True), (9.0, 94.4, True), (30.0, 98.3, True)],
)
def test_a_longer_share_is_a_longer_bar_and_none_fills_the_width(share: float, width: float, over: bool) -> None:
    assert f'width="{width:.1f}" height="8"' in bar(share)
    assert ('class="bar over"' in bar(share)) is over


def test_long_tables_are_cut_and_say_by_how_much() -> None:
    entities = tuple(declared(user(f"u{n}"), n + 1, producer_byte_rate=1.0) for n in range(MOST_ROWS + 7))
    overview = report_world.overview(report_world.cluster_of("c", entities, {}))
    assert len(rows_under(overview, "differences")) == MOST_ROWS + 1
    assert "7 more are not listed here." in report_html(overview)
    assert len(decoded(overview)[0]) == MOST_ROWS + 7


def test_headings_go_down_one_step_at_a_time_and_every_section_has_one() -> None:
    found = page(COMPANY)
    levels = [int(one[1]) for one in found.elements if re.fullmatch(r"h[1-6]", one)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert levels.count(1) == 1
    assert found.elements.count("section") == levels.count(2) == 6
    ids = [value for _, name, value in found.attributes if name == "id"]
    assert len(set(ids)) == len(ids)
    assert {
        value for _, name, value in found.attributes if name in ("aria-labelledby", "for", "list", "aria-describedby")
    } <= set(ids)


def test_what_the_scope_leaves_out_is_marked() -> None:
    scope = Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),))
    overview = report_world.overview(
        report_world.cluster_of(
            "c", (), {user("a"): {"producer_byte_rate": 1.0}, ip("1.2.3.4"): {"connection_creation_rate": 1.0}}, scope=scope
        )
    )
    assert [row["in_scope"] for row in decoded(overview)[0]] == [True, False]
    assert overview.clusters[0].counts[DriftClass.UNMANAGED] == 2


def test_the_text_has_a_line_a_cluster_and_the_place_of_the_page() -> None:
    text = plain(overview_lines(COMPANY, written="report.html"))
    counts = "6 in sync, 1 not applied, 1 changed by hand, 1 removed by hand, 1 added, 1 unmanaged"
    assert text.splitlines() == [
        f"Cluster prod-eu differs: 9 entities declared, 10 live ({counts}), read at 2026-01-02 12:00 UTC",
        "Cluster prod-us in sync: 3 entities declared, 3 live (3 in sync), read at 2026-01-02 12:00 UTC",
        "Cluster staging could not be looked at: no Kafka broker can be reached (b1.staging:9092: connection refused)",
        "The page is in report.html",
    ]
