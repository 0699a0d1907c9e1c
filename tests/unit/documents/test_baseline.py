"""Recorded baselines: written the same each time, read back, and refused when they are not what was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.documents import BASELINE, baseline_of, read_baseline
from reconciler.errors import BaselineError
from reconciler.formats.canonical import document_text
from reconciler.model.plan import ManifestCommit
from reconciler.model.state import ClusterIdentity
from tests.builders import declared, desired, pair, user
from tests.support.schemas import valid

CLUSTER = ClusterIdentity(name="prod", id="c1", kafka_version="4.3")
STATE = desired(
    declared(user("b"), producer_byte_rate=2.5, consumer_byte_rate=3.0), declared(pair("a", "<default>")), declared(user())
)


def document(**fields: Any) -> dict[str, Any]:
    return {**BASELINE.write(baseline_of(STATE, CLUSTER, ManifestCommit(commit="abc", dirty=False))), **fields}


def test_it_is_what_its_schema_says_and_reads_back_with_entities_that_have_no_keys() -> None:
    valid(document(), "baseline")
    read = read_baseline(document_text(document()), name="b.json")
    assert (read.cluster.id, read.cluster.name, read.source.commit) == ("c1", "prod", "abc")
    assert read.entities == {
        user("b"): {"producer_byte_rate": 2.5, "consumer_byte_rate": 3.0},
        pair("a", "<default>"): {},
        user(): {},
    }


def test_the_order_of_declarations_does_not_show() -> None:
    reverse = desired(*reversed(list(STATE.entities.values())))
    assert BASELINE.text(baseline_of(reverse, CLUSTER, ManifestCommit())) == BASELINE.text(
        baseline_of(STATE, CLUSTER, ManifestCommit())
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "^b.json is not a baseline written by 'apply --record-baseline': .*. Record it again$"),
        ("[]", "not a baseline"),
        ("{}", "not a baseline"),
        ("[" * 100_000, "not a baseline"),
        (json.dumps(document(format_version="2.0")), "^b.json is a baseline of format 2.0, .*. Record it again$"),
        (json.dumps(document(entities=[])), "by the other fields"),
        (json.dumps(document(digest=None)), "by the other fields, not null"),
        (json.dumps(document(digest="sha256:" + "0" * 64)), "by the other fields"),
        (json.dumps(document(cluster={"name": "prod", "id": "c2", "kafka_version": None})), "by the other fields"),
    ],
)
def test_anything_else_is_refused(text: str, words: str) -> None:
    with pytest.raises(BaselineError, match=words):
        read_baseline(text, name="b.json")
