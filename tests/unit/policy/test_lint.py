"""Every lint rule fires where it should, and is silent where it should be."""

import pytest

from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Severity, rules
from reconciler.model.quota import QuotaKey
from reconciler.model.state import DesiredEntity, DesiredQuota
from reconciler.policy.lint.precedence import Subject
from reconciler.policy.lint.rules import lint_state
from tests.builders import client, declared, desired, ip, pair, span, user

MIB = 1024**2


def findings(*entities: DesiredEntity, live=None):
    """What lint says of these declared entities: offline, or beside live ones that stay where they are not declared."""
    state = desired(*entities)
    after = {**(live or {}), **state.values()}
    subject = Subject(desired=state, after=after, before=live, changed=list(state.entities))
    return sorted(lint_state(subject), key=lambda one: (one.id, str(one.entity)))


def fired(rule: str, *entities: DesiredEntity, **more):
    return [one for one in findings(*entities, **more) if one.id == rule]


def written(entity: Entity, key: str, text: str, value: float) -> DesiredEntity:
    quota = DesiredQuota(value=value, source=span(7, column=9), text=text)
    return DesiredEntity(entity=entity, quotas={QuotaKey(key): quota}, source=span(6))


def byte_rate(text: str) -> DesiredEntity:
    number, unit = text.removesuffix("B").removesuffix("Ki"), 1024 if "Ki" in text else 1
    return written(user("a"), "producer_byte_rate", text, float(number) * unit)


@pytest.mark.parametrize("default", [user(), pair(DEFAULT, DEFAULT)])
def test_a_default_user_hides_the_quotas_of_client_ids(default):
    (found,) = fired(
        "default-hides-client-ids",
        declared(default, 1, producer_byte_rate=MIB),
        declared(client("etl"), 2, producer_byte_rate=MIB),
        declared(client("web"), 3, consumer_byte_rate=MIB),
    )

    assert (found.entity, found.key, found.span) == (default, "producer_byte_rate", span(1))
    assert [r.span for r in found.related] == [span(2)]
    assert "client-id=etl" in found.message
    assert "client-id=web" not in found.message


def test_a_default_user_hides_client_ids_that_are_only_on_the_cluster():
    live = {client(f"c{n}"): {"producer_byte_rate": 1.0} for n in range(5)}

    (found,) = fired("default-hides-client-ids", declared(user(), producer_byte_rate=MIB), live=live)

    assert "5 client-id quotas" in found.message
    assert "and 2 more" in found.message
    assert found.related == ()


@pytest.mark.parametrize("default", [user(), pair(DEFAULT, DEFAULT)])
def test_a_default_above_four_client_ids_is_one_fact(default):
    both = {"producer_byte_rate": 9.0, "consumer_byte_rate": 9.0}
    client_ids = [declared(client(name), number, **both) for number, name in enumerate("abcd", 2)]
    found = findings(declared(default, 1, **both), *client_ids)
    about_client_ids = [one for one in found if "client-id=a" in one.message]

    assert [(one.id, one.span) for one in about_client_ids] == [("default-hides-client-ids", span(1))]
    assert [one.span for one in about_client_ids[0].related] == [span(line) for line in (2, 3, 4, 5)]
    assert "producer_byte_rate, consumer_byte_rate of" in about_client_ids[0].message


def test_client_ids_below_a_default_on_the_cluster_are_one_fact():
    live = {user(): {"producer_byte_rate": 5.0}}
    (found,) = fired(
        "client-id-never-wins",
        *(declared(client(name), line, producer_byte_rate=9.0) for line, name in enumerate("abc", 4)),
        live=live,
    )

    assert (found.entity, found.span) == (client("a"), span(4))
    assert "of client-id=a and 2 other client-ids for every client" in found.message
    assert [one.span for one in found.related] == [span(5), span(6)]


@pytest.mark.parametrize("who", ["a", DEFAULT])
def test_a_default_client_id_multiplies(who):
    (found,) = fired("default-client-multiplies", declared(pair(who, DEFAULT), producer_byte_rate=9.0))

    assert found.entity == pair(who, DEFAULT)


@pytest.mark.parametrize("who", ["a", DEFAULT])
def test_a_user_s_cap_is_bypassed_by_its_default_client_id(who):
    entities = (declared(pair(who, DEFAULT), 2, producer_byte_rate=9.0), declared(user(who), 1, producer_byte_rate=50.0))

    (found,) = fired("user-cap-bypassed", *entities)

    assert (found.span, found.related[0].span) == (span(2), span(1))
    assert fired("default-client-multiplies", *entities) == []


@pytest.mark.parametrize("default", [user(), pair(DEFAULT, DEFAULT), client()])
def test_the_first_default_of_a_kind_captures_everyone(default):
    live = {user("x"): {"producer_byte_rate": 1.0}}

    defaults = declared(default, producer_byte_rate=9.0, consumer_byte_rate=9.0)
    (found,) = fired("first-default", defaults, live=live)

    assert "first producer_byte_rate, consumer_byte_rate for " in found.message


@pytest.mark.parametrize(("one", "other"), [("10.0.0.7", "::ffff:10.0.0.7"), ("2001:db8::1", "2001:DB8:0:0::1")])
def test_two_spellings_of_one_address_are_an_error(one, other):
    entities = (declared(ip(one), 1, connection_creation_rate=9), declared(ip(other), 2, connection_creation_rate=9))

    (found,) = fired("ip-two-spellings", *entities)
    assert (found.span, found.related[0].span) == (span(2), span(1))
    assert found.severity is Severity.ERROR

    live = {ip(one): {"connection_creation_rate": 5.0}}
    (found,) = fired("ip-two-spellings", declared(ip(other), 2, connection_creation_rate=9), live=live)
    assert found.span == span(2)
    assert "on the cluster" in found.message
    assert found.severity is Severity.WARNING


def test_two_addresses_or_two_spellings_that_nobody_declares_are_fine():
    entities = (declared(ip("10.0.0.7"), connection_creation_rate=9), declared(ip("10.0.0.8"), connection_creation_rate=9))

    assert fired("ip-two-spellings", *entities) == []
    live = {ip("10.0.0.7"): {"connection_creation_rate": 5.0}, ip("::ffff:10.0.0.7"): {"connection_creation_rate": 5.0}}
    assert fired("ip-two-spellings", live=live) == []


@pytest.mark.parametrize(("value", "rule"), [(1100.5, "percentage-no-limit"), (9.9, "percentage-small")])
def test_a_percentage_out_of_the_ordinary_is_named(value, rule):
    (found,) = findings(declared(user("a"), 3, request_percentage=value))

    assert (found.id, found.key, found.span) == (rule, "request_percentage", span(3))


@pytest.mark.parametrize("text", ["49", "1024", "65535"])
def test_a_small_byte_rate_without_a_unit_is_named(text):
    assert [one.id for one in findings(byte_rate(text))] == ["byte-rate-small"]


def test_a_reduction_under_load_says_how_long_clients_may_stand_still():
    live = {user("a"): {"producer_byte_rate": 100e6}}

    (found,) = fired("reduction-throttles", declared(user("a"), 5, producer_byte_rate=1e6), live=live)

    # (100 / 1 - 1) x 11 s = 1089 s
    assert "18 min" in found.message
    assert found.span == span(5)


def test_a_reduction_from_a_limit_that_no_client_reaches_throttles_nobody_at_once():
    live = {user("a"): {"producer_byte_rate": 1e12}}

    assert fired("reduction-throttles", declared(user("a"), producer_byte_rate=1e6), live=live) == []


def test_every_rule_is_explained_and_can_be_changed():
    assert [rule.id for rule in rules("lint").values() if len(rule.explanation) < 60 or not rule.adjustable] == []
