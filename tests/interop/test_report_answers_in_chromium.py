"""The page of a report in a real Chromium: every answer of its script is the one that the command line gives."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.insight.report.reading import overview_of
from reconciler.model.cluster import Prune, Scope
from reconciler.model.effect import OTHER, Known, KnownAddress, KnownClient
from reconciler.model.entity import DEFAULT, Entity, display_name
from reconciler.model.overview import ClusterOverview, Overview
from reconciler.model.selector import MatchKind, Selector, TypeMatch
from reconciler.resolution.addresses import ADDRESS_KEY
from reconciler.resolution.effective_quotas import KEYS, Caveats, EffectiveQuotas, Resolution, ResolveOptions
from reconciler.text import amount
from reconciler.workflows.resolve import current_view, planned_view
from tests.builders import client, current, declared, ip, pair, user
from tests.fakes import FakeCluster
from tests.support import report_world
from tests.support.chromium import Chromium, chromium, complaints
from tests.support.hostile_names import HOSTILE
from tests.support.report_world import write_page as write

pytestmark = pytest.mark.interop

NOTHING = "\N{EN DASH}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as started:
        yield started


@pytest.fixture
def company(tmp_path: Path) -> Path:
    return write(tmp_path, report_world.company())


NAMES = (
    "a",
    "b",
    "<default>",
    "a b",
    "(any other)",
    "ANONYMOUS",
    '"quoted"',
    "\u202eevil",
    "é",
    "\\",
    "a\nb",
    "__proto__",
    "constructor",
    "0",
    "-",
)
ADDRESSES = (
    "10.0.0.1", "10.1", "167772161", "::ffff:10.0.0.1", "[::ffff:10.0.0.1]", "::1", "0:0:0:0:0:0:0:1", "[::1]", "1::",
    "fe80::1%1", "fe80::1", "localhost", "::ffff:10.0.0.1%2", "010.0.0.1", "1.2.3.4", "::1.2.3.4", "example",
    "00::0001", "1.2.03.4", "feed",
)  # fmt: skip
NOT_ADDRESSES = (
    "[10.0.0.1]",
    ":::",
    "::g",
    "12345::",
    "::1.2.3",
    "[x]",
    "[]",
    "1::2::3",
    "[",
    "1:2:3:4:5:6:7:8:9",
    "1.2.3.4:",
    "300:",
    "::1%",
)
VALUES = (
    1.0,
    0.1,
    1023.0,
    1024.0,
    1000.5 * 1024,
    1001.5 * 1024,
    1e-7,
    33.3,
    2.0**53,
    2.0**63,
    1e20,
    1.5e300,
    20 * 1024.0**2,
    float("nan"),
    float("inf"),
)

ASK = """
(cases) => {
  const set = (id, value) => { document.getElementById(id).value = value; };
  const check = (id, value) => { document.getElementById(id).checked = value; };
  const texts = (row) => [...row.children].map((cell) => cell.textContent);
  return cases.map((one) => {
    set("who-cluster", String(one.cluster));
    document.getElementById("who-cluster").dispatchEvent(new Event("change", {bubbles: true}));
    set("who-state", one.state);
    check("ip" in one ? "who-is-address" : "who-is-client", true);
    set("who-ip", one.ip ?? ""); set("who-user", one.user ?? ""); set("who-client", one.client ?? "");
    check("who-any-client", one.client === null);
    document.getElementById("who-form").dispatchEvent(new Event("input", {bubbles: true}));
    const answer = document.getElementById("who-answer");
    const rows = [...answer.querySelectorAll("tr[data-key]")];
    const limits = Object.fromEntries(rows.map((row) => [row.dataset.key, texts(row).slice(1)]));
    const keys = [...answer.querySelectorAll(".ladder thead th")].slice(1).map((head) => head.textContent);
    const ladder = {};
    keys.forEach((key, at) => {
      ladder[key] = [...answer.querySelectorAll(".ladder tbody tr")].map((row) => {
        const cell = row.children[at + 1];
        return [cell.dataset.status, cell.querySelector(".value")?.textContent ?? null];
      });
    });
    return {limits, ladder, labels: [...answer.querySelectorAll(".ladder tbody th code")].map((label) => label.textContent)};
  });
}
"""


def random_quotas(chance: random.Random) -> dict[Entity, dict[str, float]]:
    def name() -> Any:
        return DEFAULT if chance.random() < 0.35 else chance.choice(NAMES)

    def address() -> Any:
        return DEFAULT if chance.random() < 0.2 else chance.choice(ADDRESSES)

    shapes = (lambda: user(name()), lambda: client(name()), lambda: pair(name(), name()), lambda: ip(address()))
    quotas: dict[Entity, dict[str, float]] = {}
    for _ in range(chance.choice((0, 1, 3, 10, 40))):
        entity = chance.choice(shapes)()
        keys = [ADDRESS_KEY] if entity.types == ("ip",) else chance.sample(KEYS, chance.randint(1, len(KEYS)))
        quotas[entity] = {key: chance.choice(VALUES) for key in keys}
    # What this tool does not know is shown, and limits nobody.
    quotas[Entity.of({"client-id-prefix": "a"})] = {"producer_byte_rate": 7.0}
    # In the order of the page, which decides whose spelling of one address is told first.
    return dict(sorted(quotas.items(), key=lambda one: one[0].sort_key))


def random_question(chance: random.Random) -> Known:
    if chance.random() < 0.3:
        return KnownAddress(ip=OTHER if chance.random() < 0.1 else chance.choice(ADDRESSES))
    names = (*NAMES, OTHER, "nobody")
    return KnownClient(user=chance.choice(names), client_id=chance.choice((*names, "")))


def shown(name: object) -> str:
    return "(any other)" if name is OTHER else display_name(str(name)) if name else "(none)"


def typed(name: Any) -> str:
    """As a person may type it: unusual names in the form in which they are shown."""
    return "" if name in (OTHER, "") else name if name.isprintable() and not name.startswith('"') else display_name(name)


def case(cluster: int, state: str, known: Known) -> dict[str, object]:
    if isinstance(known, KnownAddress):
        return {"cluster": cluster, "state": state, "ip": typed(known.ip)}
    # An empty field is a client that sends no id; any other id is a box to tick.
    return {
        "cluster": cluster,
        "state": state,
        "user": typed(known.user),
        "client": None if known.client_id is OTHER else typed(known.client_id),
    }


def entity_asking(known: Known) -> Entity:
    if isinstance(known, KnownAddress):
        return ip(DEFAULT if known.ip is OTHER else known.ip)
    names = {"client-id": DEFAULT if known.client_id is OTHER else known.client_id}
    return Entity.of({**names, **({} if known.user is OTHER else {"user": known.user})})


def expected(resolution: Resolution) -> dict[str, object]:
    """The same answer, by the code behind ``resolve``."""
    limits: dict[str, list[str]] = {}
    for key in resolution.keys:
        if key in resolution.unknown:
            limits[key] = ["not known", resolution.unknown[key], "", ""]
        elif key not in resolution.quotas:
            limits[key] = ["unlimited", "", "", ""]
        else:
            found = resolution.quotas[key]
            tags = " ".join(f"{tag}={shown(OTHER if name is None else name)}" for tag, name in found.bucket.items())
            limits[key] = [amount(key, found.value), str(found.source), str(found.level), tags]
    ladder = {
        key: [(rung.status.value, None if rung.value is None else amount(key, rung.value)) for rung in rungs]
        for key, rungs in (resolution.ladder or {}).items()
    }
    labels = [str(rung.entity) if rung.entity else None for rung in next(iter((resolution.ladder or {"": ()}).values()))]
    return {"limits": limits, "ladder": ladder, "labels": labels}


def answered(raw: dict[str, Any], wanted: dict[str, Any]) -> dict[str, object]:
    """The page's answer without the words that are its own."""
    limits = {key: [*cells[:3], cells[3].rpartition(": ")[0]] for key, cells in raw["limits"].items()}
    ladder = {
        key: [(status, None if value == NOTHING else value) for status, value in rungs] for key, rungs in raw["ladder"].items()
    }
    labels = [None if one is None else label for label, one in zip(raw["labels"], wanted["labels"], strict=True)]
    return {"limits": limits, "ladder": ladder, "labels": labels}


def overview_of_worlds(worlds: Sequence[Mapping[Entity, Mapping[str, float]]], caveats: Sequence[Caveats]) -> Overview:
    clusters: list[ClusterOverview] = []
    for number, (quotas, doubt) in enumerate(zip(worlds, caveats, strict=True)):
        entities = tuple(declared(entity, 1, **values) for entity, values in quotas.items() if entity.is_known)
        made = report_world.cluster_of(f"c{number}", entities if number % 2 else (), quotas)
        clusters.append(replace(made, callback=doubt.callback, static_defaults=doubt.static_defaults))
    return report_world.overview(*clusters)


@pytest.mark.parametrize("seed", range(4))
def test_the_page_answers_thousands_of_random_questions_as_resolve_does(browser: Chromium, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    worlds = [random_quotas(chance) for _ in range(12)]
    caveats = [Caveats() for _ in worlds]
    caveats[4] = Caveats(callback="the brokers have their own rules")
    caveats[5] = Caveats(static_defaults={"producer_byte_rate": "quota.producer.default holds"})
    browser.look(width=1280)
    browser.open(write(tmp_path, overview_of_worlds(worlds, caveats)))
    questions = [(number, random_question(chance)) for number in range(len(worlds)) for _ in range(100)]
    cases = [case(number, "declared" if number % 2 and chance.random() < 0.5 else "live", known) for number, known in questions]
    answers = [EffectiveQuotas(quotas, doubt) for quotas, doubt in zip(worlds, caveats, strict=True)]
    found = browser.run(ASK, cases)
    winners = 0
    for (number, known), one, raw in zip(questions, cases, found, strict=True):
        resolution = answers[number].answer(entity_asking(known), ResolveOptions(explain=True))
        wanted = expected(resolution)
        assert answered(raw, wanted) == wanted, (one, worlds[number])
        winners += len(resolution.quotas)
    assert winners > len(questions) / 2
    assert complaints(browser) == []


def test_what_holds_after_the_next_apply_is_what_resolve_says_of_the_planned_state(browser: Chromium, tmp_path: Path) -> None:
    chance = random.Random(11)
    clusters, answers = [], []
    clients_alone = Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),))
    for number in range(12):
        live, wanted = random_quotas(chance), random_quotas(chance)
        scope = clients_alone if number % 3 == 0 else Scope()
        entities = tuple(declared(entity, 1, **values) for entity, values in wanted.items() if scope.contains(entity))
        intent = report_world.intent(f"c{number}", *entities, scope=scope, prune=list(Prune)[number % 2])
        state, source = current(live), FakeCluster(live)
        clusters.append(overview_of(intent, state, source=source))
        planned = planned_view(intent, current_view(state, source=source)).entities
        answers.append(EffectiveQuotas(dict(sorted(planned.items(), key=lambda one: one[0].sort_key))))
    browser.look(width=1280)
    browser.open(write(tmp_path, report_world.overview(*clusters)))
    questions = [(number, random_question(chance)) for number in range(len(clusters)) for _ in range(60)]
    found = browser.run(ASK, [case(number, "planned", known) for number, known in questions])
    for (number, known), raw in zip(questions, found, strict=True):
        wanted_answer = expected(answers[number].answer(entity_asking(known), ResolveOptions(explain=True)))
        assert answered(raw, wanted_answer) == wanted_answer, (number, known)


def test_what_is_no_address_is_told_as_such(browser: Chromium, tmp_path: Path) -> None:
    browser.open(write(tmp_path, overview_of_worlds([{ip("1.2.3.4"): {ADDRESS_KEY: 1.0}}], [Caveats()])))
    for text in NOT_ADDRESSES:
        with pytest.raises(ValueError, match="neither an address nor a host name"):
            EffectiveQuotas({}).answer(ip(text))
        (found,) = browser.run(ASK, [{"cluster": 0, "state": "live", "ip": text}])
        assert found["limits"] == {}, text
        assert (
            browser.evaluate("document.getElementById('who-status').textContent") == "This is neither an address nor a host name."
        )


def test_every_value_is_printed_digit_for_digit_as_the_command_line_prints_it(browser: Chromium, tmp_path: Path) -> None:
    chance = random.Random(7)
    values = [*VALUES, *(chance.uniform(0, 10) * 10.0 ** chance.randint(-8, 22) for _ in range(600))]
    values += [(number + 0.5) * 1024 ** chance.randint(0, 4) for number in range(1000, 1200)]
    keys = [chance.choice((*KEYS, ADDRESS_KEY, "another_key")) for _ in values]
    live = {user(f"u{number:04}"): {key: value} for number, (key, value) in enumerate(zip(keys, values, strict=True))}
    browser.open(write(tmp_path, report_world.overview(report_world.cluster_of("c", (), live))))
    read = """() => {
      const found = [];
      for (;;) {
        found.push(...[...document.querySelectorAll("#entities-body .limits")].map((one) => one.textContent));
        const next = document.getElementById("entities-after");
        if (next.disabled) return found;
        next.click();
      }
    }"""
    assert browser.run(read) == [f"{key} {amount(key, value)}" for key, value in zip(keys, values, strict=True)]


def test_names_are_shown_as_the_command_line_shows_them(browser: Chromium, tmp_path: Path) -> None:
    live = {user(name): {"producer_byte_rate": 1.0} for name in HOSTILE if name}
    overview = report_world.overview(report_world.cluster_of("c", (), live))
    browser.open(write(tmp_path, overview))
    found: list[str] = []
    for _ in range(2):
        found += browser.evaluate(
            "[...document.querySelectorAll('#entities-body td[data-label=Entity] code')].map((one) => one.textContent)"
        )
        browser.evaluate("document.getElementById('entities-after').click()")
    assert found == [str(one.entity) for one in overview.clusters[0].entities]
    assert browser.evaluate("document.querySelectorAll('script, h1, img').length") == 3
    assert complaints(browser) == []


def test_the_search_finds_by_name_owner_file_and_note_and_by_state(browser: Chromium, company: Path) -> None:
    browser.open(company)
    look = """(text, kind, cluster) => {
      document.getElementById("entities-search").value = text;
      document.getElementById("entities-kind").value = kind;
      document.getElementById("entities-cluster").value = cluster;
      document.getElementById("entities-form").dispatchEvent(new Event("input", {bubbles: true}));
      const names = [...document.querySelectorAll("#entities-body td[data-label=Entity] code")].map((one) => one.textContent);
      return [document.getElementById("entities-status").textContent, names];
    }"""
    assert browser.run(look, "", "", "")[0] == "18 entities"
    assert browser.run(look, "TEAM-Search", "", "")[1] == ["user=search-indexer"]
    assert browser.run(look, "runbook nightly", "", "")[0] == "2 entities of 18"
    assert browser.run(look, "payments/quotas.yaml:9", "", "1")[1] == ["user=payments-api"]
    assert browser.run(look, "", "differences", "")[1] == [
        'user="<default>"',
        "user=payments-api client-id=settlement",
        "user=reporting",
        "user=search-indexer",
    ]
    assert browser.run(look, "", "unmanaged", "")[1] == ["client-id=mirror-maker"]
    assert browser.run(look, "", "protected", "0")[0] == "3 entities of 18"
    assert browser.run(look, "", "", "2")[0] == "4 entities of 18"
    assert browser.run(look, "no such thing", "", "") == ["No entity is like that.", []]


def test_a_link_to_an_answer_gives_it_again(browser: Chromium, company: Path) -> None:
    browser.open(company)
    browser.run(ASK, [{"cluster": 0, "state": "live", "user": "payments-api", "client": "settlement"}])
    said = browser.evaluate("document.getElementById('who-status').textContent")
    assert said.startswith("user=payments-api client-id=settlement: producer_byte_rate 30 MiB/s")
    fragment = browser.evaluate(
        "new Promise((done) => {"
        " const look = () => location.hash.includes('settlement') ? done(location.hash) : setTimeout(look, 20);"
        " look(); })"
    )
    assert fragment == "#who?cluster=prod-eu&state=live&user=payments-api&client=settlement"
    browser.open(company, fragment)
    assert browser.evaluate("document.getElementById('who-status').textContent") == said


def test_of_a_cluster_that_was_not_read_only_what_is_declared_can_be_asked(browser: Chromium, company: Path) -> None:
    browser.open(company, "#who?cluster=staging&state=live&user=x&client=")
    assert browser.evaluate("[...document.getElementById('who-state').options].map((one) => one.value)") == ["declared"]
    assert "producer_byte_rate 1 MiB/s" in browser.evaluate("document.getElementById('who-status').textContent")


def test_a_hundred_thousand_entities_are_a_small_page_that_finds_each_of_them(browser: Chromium, tmp_path: Path) -> None:
    path = write(tmp_path, report_world.large(100_000))
    assert path.stat().st_size < 10_000_000
    browser.look(width=1280)
    browser.open(path)
    assert browser.evaluate("document.getElementById('entities-status').textContent") == "1 to 50 of 100,000 entities"
    assert browser.evaluate("document.querySelectorAll('*').length") < 6000
    search = """(text) => {
      const field = document.getElementById("entities-search");
      field.value = text;
      field.dispatchEvent(new Event("input", {bubbles: true}));
      return [document.getElementById("entities-status").textContent, document.querySelector("#entities-body code").textContent];
    }"""
    assert browser.run(search, "user-99995") == ["1 entity of 100,000", "user=user-99995 client-id=app"]
    (found,) = browser.run(ASK, [{"cluster": 0, "state": "live", "user": "user-99995", "client": "app"}])
    assert found["limits"]["producer_byte_rate"][1:3] == ["user=user-99995 client-id=app", "1"]
