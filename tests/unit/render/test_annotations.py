"""GitHub workflow commands: escaping, order, the limit of ten, and paths from the root of the repository."""

from __future__ import annotations

import pytest

from reconciler.model.finding import Finding, Related, Severity
from reconciler.model.plan import GuardResult, GuardStatus
from reconciler.render.ci_reports import findings_annotations, plan_annotations
from reconciler.render.repository_links import RepoPaths
from tests.builders import plan, span


def finding(severity: Severity, line: int = 1, file: str = "a.yaml", message: str = "words", **fields: object) -> Finding:
    return Finding(id="some-rule", severity=severity, message=message, span=span(line, file, 7), **fields)  # type: ignore[arg-type]  # a test names fields as it likes


def test_an_annotation_carries_place_title_and_message() -> None:
    related = (Related(span=span(2, "b.yaml"), message="first claimed here"),)
    assert findings_annotations((finding(Severity.ERROR, 3, related=related),)) == (
        "::error file=a.yaml,line=3,col=7,title=some-rule::words%0Ab.yaml:2:1: first claimed here\n"
    )


def test_per_cent_colon_comma_and_line_breaks_are_coded_where_they_mean_something() -> None:
    text = findings_annotations((finding(Severity.WARNING, file="a,b:c%.yaml", message="100%: a,b\r\nc\x1b"),))
    assert text == "::warning file=a%2Cb%3Ac%25.yaml,line=1,col=7,title=some-rule::100%25: a,b%0D%0Ac\\u001b\n"


def test_a_finding_without_a_place_has_a_title_only() -> None:
    assert (
        findings_annotations((Finding(id="no-manifests", severity=Severity.INFO, message="x"),))
        == "::notice title=no-manifests::x\n"
    )


def test_the_worst_come_first_then_file_and_line() -> None:
    found = [
        finding(Severity.INFO, 1, "a.yaml"),
        finding(Severity.ERROR, 10, "b.yaml"),
        finding(Severity.ERROR, 9, "b.yaml"),
        finding(Severity.WARNING, 1, "a.yaml"),
        finding(Severity.ERROR, 50, "a.yaml"),
    ]
    lines = findings_annotations(found).splitlines()
    places = [line.partition(",col")[0] for line in lines]
    assert places == [
        "::error file=a.yaml,line=50",
        "::error file=b.yaml,line=9",
        "::error file=b.yaml,line=10",
        "::warning file=a.yaml,line=1",
        "::notice file=a.yaml,line=1",
    ]


@pytest.mark.parametrize(("count", "lines", "last"), [(9, 9, None), (10, 10, "1 more error."), (30, 10, "21 more errors.")])
def test_the_tenth_of_a_kind_counts_the_rest(count: int, lines: int, last: str | None) -> None:
    text = findings_annotations([finding(Severity.ERROR, n + 1) for n in range(count)])
    assert text.count("::error ") == lines
    if last:
        assert text.splitlines()[-1].startswith(f"::error title=kafka-quotas::{last}")


def test_every_kind_has_its_own_ten() -> None:
    text = findings_annotations([finding(severity, n + 1) for severity in Severity for n in range(20)])
    assert [text.count(f"::{kind} ") for kind in ("error", "warning", "notice")] == [10, 10, 10]


def test_guards_are_annotated_where_their_limit_is_set() -> None:
    statuses = {
        "prune": GuardStatus.NEEDS_ACCEPTANCE,
        "default-entity": GuardStatus.ACCEPTED,
        "too-many-removals": GuardStatus.PASSED,
    }
    guards = tuple(
        GuardResult(id=name, status=status, measured="m", limit="l", set_in="c.yaml:4:3", message="why")
        for name, status in statuses.items()
    )
    assert plan_annotations(plan(guards=guards)) == (
        "::warning file=c.yaml,line=4,col=3,title=guard/prune::"
        "why To accept, pass --accept prune.\n"
        "::notice file=c.yaml,line=4,col=3,title=guard/default-entity::why\n"
    )


@pytest.mark.parametrize(
    ("file", "relative"),
    [
        ("teams/a.yaml", "quotas/teams/a.yaml"),
        ("./teams//a.yaml", "quotas/teams/a.yaml"),
        ("../b.yaml", "b.yaml"),
        ("/repo/quotas/a.yaml", "quotas/a.yaml"),
        ("../../outside.yaml", "../../outside.yaml"),
        ("/elsewhere/a.yaml", "/elsewhere/a.yaml"),
        ("/repository/a.yaml", "/repository/a.yaml"),
        ("../../repository/a.yaml", "../../repository/a.yaml"),
        ("..", "."),
    ],
)
def test_paths_are_those_below_the_root(file: str, relative: str) -> None:
    assert RepoPaths(working_folder="/repo/quotas", root="/repo").relative(file) == relative


@pytest.mark.parametrize(
    ("file", "relative"), [("./a//b.yaml", "a/b.yaml"), ("/abs/a.yaml", "/abs/a.yaml"), ("a.yaml", "a.yaml")]
)
def test_without_a_root_paths_are_only_tidied(file: str, relative: str) -> None:
    assert RepoPaths().relative(file) == relative
