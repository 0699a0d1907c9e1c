"""The identity of a quota is its entity: in which file, document or order it is written changes nothing."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model import ManifestCommit
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.plan import Plan
from reconciler.workflows.intent import load_intent
from reconciler.workflows.plan import plan_from
from tests.builders import current, pair, user
from tests.fakes import FakeClock

HEAD = "apiVersion: kafka-quotas/v1\n"
CLUSTER = HEAD + "kind: Cluster\nmetadata: {name: prod}\nspec: {prune: always}\n"
LIVE = {
    user("a"): {"producer_byte_rate": 1.0},
    user("gone"): {"request_percentage": 5.0},
    user("b"): {"request_percentage": 300.0},
}
ENTITIES = {
    user("a"): "{user: a}",
    user("b"): "{user: b}",
    user(DEFAULT): "{user: {default: true}}",
    pair("a", "app"): "{user: a, client-id: app}",
    pair("b", DEFAULT): "{client-id: {default: true}, user: b}",
}
VALUES = st.fixed_dictionaries(
    {}, optional={"producer_byte_rate": st.sampled_from(["1", "10MiB"]), "request_percentage": st.just("300")}
)
ENTRIES = st.dictionaries(st.sampled_from(list(ENTITIES)), VALUES, min_size=1)


def planned(files: dict[str, list[str]]) -> Plan:
    """Each file is a list of documents, each document the text of its entries."""
    with tempfile.TemporaryDirectory() as folder:
        for name, documents in {**files, "cluster.yaml": []}.items():
            texts = [f"{HEAD}kind: ClientQuotas\nspec:\n  quotas:\n{entries}" for entries in documents]
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("---\n".join(texts) if texts else CLUSTER, encoding="utf-8")
        return plan_from(
            load_intent([folder], cluster=None), current(LIVE), accepted=(), source=ManifestCommit(), clock=FakeClock()
        )


def entry(entity: Entity, values: dict[str, str], shuffle: random.Random) -> str:
    keys = list(values.items())
    shuffle.shuffle(keys)
    return f"    - match: {ENTITIES[entity]}\n      quotas: {{{', '.join(f'{key}: {value}' for key, value in keys)}}}\n"


@settings(max_examples=40)
@given(ENTRIES, st.randoms(use_true_random=False))
def test_moving_entries_between_files_changes_no_digest(entries: dict[Entity, dict[str, str]], shuffle: random.Random) -> None:
    together = planned({"all.yaml": ["".join(entry(e, values, shuffle) for e, values in entries.items())]})
    places: dict[str, list[str]] = {}
    items = list(entries.items())
    shuffle.shuffle(items)
    for entity, values in items:
        documents = places.setdefault(shuffle.choice(["z.yaml", "a.yml", "teams/x/b.yaml"]), [])
        text = entry(entity, values, shuffle)
        if documents and shuffle.random() < 0.5:
            documents[-1] += text
        else:
            documents.append(text)
    apart = planned(places)
    assert apart.digest == together.digest
    assert [change.alteration() for change in apart.changes] == [change.alteration() for change in together.changes]
    assert apart.summary == together.summary
    assert [(g.id, g.status, g.measured) for g in apart.guards] == [(g.id, g.status, g.measured) for g in together.guards]
