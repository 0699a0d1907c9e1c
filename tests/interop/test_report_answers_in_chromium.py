"""The page of a report in a real Chromium: every answer of its script is the one that the command line gives."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.insight.report import overview_of
from reconciler.model.cluster import Prune, Scope
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch, display_name
from reconciler.resolution.effective_quotas import KEYS, EffectiveQuotas
from reconciler.text import amount
from reconciler.workflows.resolve import current_view, planned_view
from tests.builders import client, current, declared, ip, pair, user
from tests.fakes import FakeCluster
from tests.support import report_world
from tests.support.chromium import Chromium, complaints
from tests.support.report_world import write_page as write

pytestmark = pytest.mark.interop

NAMES = ("a", "b", "<default>", "a b", "ANONYMOUS", '"quoted"', "\u202eevil", "é", "\\", "a\nb", "__proto__", "constructor", "0")
ADDRESSES = ("10.0.0.1", "::1", "example")
KEY = "connection_creation_rate"

ASK = """
(cases) => {
  const form = document.getElementById("who-form");
  return cases.map((one) => {
    document.getElementById("who-cluster").value = String(one.cluster);
    document.getElementById("who-cluster").dispatchEvent(new Event("change"));
    for (const name of ["state", "user", "client", "ip"]) document.getElementById("who-" + name).value = one[name];
    document.getElementById("who-none").checked = one.none;
    form.dispatchEvent(new Event("input"));
    const rows = [...document.querySelectorAll("#who-answer tr[data-key]")];
    const texts = (row) => [...row.children].slice(1, 4).map((cell) => cell.textContent);
    return Object.fromEntries(rows.map((row) => [row.dataset.key, texts(row)]));
  });
}
"""


def random_quotas(chance: random.Random) -> dict[Entity, dict[str, float]]:
    def name() -> Any:
        return DEFAULT if chance.random() < 0.35 else chance.choice(NAMES)

    shapes = (lambda: user(name()), lambda: client(name()), lambda: pair(name(), name()), lambda: ip(chance.choice(ADDRESSES)))
    quotas: dict[Entity, dict[str, float]] = {ip(DEFAULT): {KEY: 9.0}} if chance.random() < 0.5 else {}
    for _ in range(chance.choice((0, 3, 10, 40))):
        entity = chance.choice(shapes)()
        keys = [KEY] if entity.types == ("ip",) else chance.sample(KEYS, chance.randint(1, len(KEYS)))
        quotas[entity] = {key: float(chance.randrange(1, 10**6)) for key in keys}
    # What this tool does not know is shown, and limits no client.
    quotas[Entity.of({"client-id-prefix": "a"})] = {"producer_byte_rate": 7.0}
    return quotas


def random_question(chance: random.Random) -> tuple[dict[str, object], Entity]:
    """What is typed, and the entity that ``resolve`` would be asked for. Names are typed as the page shows them."""
    asked: dict[str, object] = {"user": "", "client": "", "ip": "", "none": False}
    if chance.random() < 0.3:
        address = chance.choice(ADDRESSES)
        return asked | {"ip": address}, ip(address)
    names: dict[str, Any] = {"client-id": DEFAULT}
    if chance.random() < 0.8:
        names["user"] = chance.choice((*NAMES, "nobody"))
        asked["user"] = display_name(names["user"])
    if (kind := chance.random()) < 0.2:
        names["client-id"], asked["none"] = "", True
    elif kind < 0.8:
        names["client-id"] = chance.choice((*NAMES, "nobody"))
        asked["client"] = display_name(names["client-id"])
    return asked, Entity.of(names)


def expected(quotas: EffectiveQuotas, entity: Entity) -> dict[str, list[str]]:
    found = quotas.answer(entity)
    return {
        key: [amount(key, limit.value), str(limit.source), str(limit.level)]
        if (limit := found.quotas.get(key)) is not None
        else ["unlimited", "", ""]
        for key in found.keys
    }


def test_the_page_answers_random_questions_as_resolve_does(browser: Chromium, tmp_path: Path) -> None:
    chance = random.Random(11)
    clusters, answers = [], []
    clients_alone = Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),))
    for number in range(24):
        live, wanted = random_quotas(chance), random_quotas(chance)
        scope = clients_alone if number % 3 == 0 else Scope()
        entities = tuple(declared(one, 1, **values) for one, values in wanted.items() if one.is_known and scope.contains(one))
        intent = report_world.intent(f"c{number}", *entities, scope=scope, prune=list(Prune)[number % 2])
        state, source = current(live), FakeCluster(live)
        clusters.append(overview_of(intent, state, source=source))
        planned = planned_view(intent, current_view(state, source=source)).entities
        declared_alone = {entity.entity: {key.value: quota.value for key, quota in entity.quotas.items()} for entity in entities}
        states = {"live": live, "planned": planned, "declared": declared_alone}
        answers.append({name: EffectiveQuotas(quotas) for name, quotas in states.items()})
    browser.look(width=1280)
    browser.open(write(tmp_path, report_world.overview(*clusters)))
    questions = [
        (number, chance.choice(("live", "planned", "declared")), *random_question(chance))
        for number in range(len(clusters))
        for _ in range(80)
    ]
    found = browser.run(ASK, [{**asked, "cluster": number, "state": side} for number, side, asked, _ in questions])
    winners = 0
    for (number, asked_state, asked, entity), got in zip(questions, found, strict=True):
        wanted_answer = expected(answers[number][asked_state], entity)
        assert got == wanted_answer, (number, asked_state, asked)
        winners += sum(limit[0] != "unlimited" for limit in wanted_answer.values())
    assert winners > len(questions) / 2
    assert complaints(browser) == []


def test_a_limit_that_brokers_decide_in_their_own_way_is_not_known(browser: Chromium, tmp_path: Path) -> None:
    cluster = report_world.cluster_of("c", (), {user("a"): {"producer_byte_rate": 1.0}})
    ruled = replace(cluster, callback="the brokers have their own rules")
    static = replace(cluster, static_defaults={"consumer_byte_rate": "quota.consumer.default is set"})
    browser.open(write(tmp_path, report_world.overview(ruled, static)))
    asked = {"state": "live", "user": "a", "client": "", "ip": "", "none": False}
    first, second = browser.run(ASK, [{**asked, "cluster": 0}, {**asked, "cluster": 1}])
    assert first["producer_byte_rate"][:2] == ["not known", "the brokers have their own rules"]
    assert second["producer_byte_rate"][0] == "1 B/s"
    assert second["consumer_byte_rate"][:2] == ["not known", "quota.consumer.default is set"]


def test_the_search_finds_by_name_owner_file_and_note_and_by_state(browser: Chromium, tmp_path: Path) -> None:
    browser.open(write(tmp_path, report_world.company()))
    look = """(text, state, cluster) => {
      document.getElementById("entities-search").value = text;
      document.getElementById("entities-state").value = state;
      document.getElementById("entities-cluster").value = cluster;
      document.getElementById("entities-form").dispatchEvent(new Event("input"));
      const names = [...document.querySelectorAll("#entities-body td[data-label=Entity] code")].map((one) => one.textContent);
      return [document.getElementById("entities-status").textContent, names];
    }"""
    assert browser.run(look, "", "", "")[0] == "18 entities"
    assert browser.run(look, "TEAM-Search", "", "")[1] == ["user=search-indexer"]
    assert browser.run(look, "runbook nightly", "", "")[0] == "2 entities"
    assert browser.run(look, "payments/quotas.yaml:9", "", "1")[1] == ["user=payments-api"]
    assert browser.run(look, "", "differs", "")[1] == [
        "user=payments-api client-id=settlement",
        "user=reporting",
        "user=search-indexer",
    ]
    assert browser.run(look, "", "unmanaged", "0")[1] == ['user="<default>"', "client-id=mirror-maker"]
    assert browser.run(look, "nobody of this name", "", "") == ["0 entities", []]


def test_an_answer_can_be_linked_to(browser: Chromium, tmp_path: Path) -> None:
    path = write(tmp_path, report_world.company())
    browser.open(path, "#who?cluster=prod-us&state=planned&user=payments-api&client=settlement")
    assert (
        browser.evaluate("document.querySelector('#who-answer tr[data-key=producer_byte_rate] strong').textContent") == "50 MiB/s"
    )
    browser.evaluate("document.getElementById('who-client').value = 'other'")
    browser.evaluate("document.getElementById('who-form').dispatchEvent(new Event('input'))")
    until = "const look = () => (location.hash.includes('client=other') ? done(1) : setTimeout(look, 20)); look();"
    assert browser.evaluate(f"new Promise((done) => {{ {until} }})") == 1
