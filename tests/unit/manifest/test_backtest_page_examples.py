"""The documents that docs/backtest.md shows are read without a finding, and mean what the page says of them."""

from __future__ import annotations

import re

from reconciler.manifest.documents import ClusterDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.cluster import HistoryNeeds
from tests.support.pages import before

PAGE = before("backtest", "Simulate a lost broker or more traffic")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_every_example_is_a_good_document() -> None:
    read = [read_documents(block.encode(), "page.yaml") for block in BLOCKS]
    assert [content.findings for content in read] == [()]
    ((cluster,),) = (content.documents for content in read)
    assert isinstance(cluster, ClusterDocument)
    policy = cluster.spec.backtest
    assert policy.history == HistoryNeeds(hours=24, coverage_percent=95)
    assert policy.fail[0].owners == ("team-payments",)


def test_the_fields_of_a_rule_are_all_on_the_page() -> None:
    from reconciler.formats.shapes import load_schema

    spec = load_schema("cluster")["properties"]["spec"]["properties"]
    fields = spec["backtest"]["properties"]["fail"]["items"]["properties"]
    table = PAGE[PAGE.index("| field |") : PAGE.index("`validate` reports")]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(fields)
