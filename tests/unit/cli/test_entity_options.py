"""The options that name entities: what they become, and what they refuse."""

import argparse

import pytest

from reconciler.cli.declaration import add_options, read
from reconciler.cli.entity_options import FilterOptions, entity_of, literal_default_warnings, parse_settings, selector_of
from reconciler.errors import UsageError
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch
from tests.builders import client, ip, pair, user


def parsed(*arguments: str) -> FilterOptions:
    parser = argparse.ArgumentParser()
    add_options(parser, FilterOptions)
    return read(FilterOptions, parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("arguments", "entity"),
    [
        (["--name", "user=alice"], user("alice")),
        (["--name", "user=CN=a,OU=b"], user("CN=a,OU=b")),
        (["--name", "client-id=app", "--name", "user=alice"], pair("alice", "app")),
        (["--names", "user=alice,client-id=app"], pair("alice", "app")),
        (["--names=client-id=my-client", "--defaults=user"], pair(DEFAULT, "my-client")),
        (["--defaults", "user,client-id"], pair(DEFAULT, DEFAULT)),
        (["--names", "user=<default>"], user("<default>")),
        (["--names", "user= padded "], user(" padded ")),
        (["--name", "ip=10.0.0.7"], ip("10.0.0.7")),
        (["--name", "client-id=--strict"], client("--strict")),
        ([], None),
    ],
)
def test_options_name_one_entity(arguments: list[str], entity: Entity | None) -> None:
    assert entity_of(parsed(*arguments)) == entity


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--name", "usr=alice"], ["'usr'", "user, client-id, ip", "Did you mean 'user'"]),
        (["--name", "group=x"], ["'group'", "user, client-id, ip"]),
        (["--defaults", "client_id"], ["'client_id'", "Did you mean 'client-id'"]),
        (["--names", "user=CN=a,OU=b"], ["'OU'", "--name TYPE=NAME"]),
        (["--names", "user=a,b"], ["'b'", "--name TYPE=NAME"]),
        (["--names", "user=a,"], ["''"]),
        (["--defaults", "user,"], ["''", "user, client-id, ip"]),
        (["--defaults", "user=alice"], ["without names"]),
        (["--name", "alice"], ["TYPE=NAME", "'alice'"]),
        (["--name", "user=a", "--names", "user=b"], ["'--name user=a'", "'--names user=b'"]),
        (["--name", "user=a", "--defaults", "user"], ["'--name user=a'", "'--defaults user'"]),
        (["--name", "user="], ["empty", "--defaults user"]),
        (["--name", "ip=1.2.3.4", "--name", "user=a"], ["ip", "cannot be combined"]),
        (["--defaults", "ip,client-id"], ["ip", "cannot be combined"]),
        (["--name", "user=" + "é" * 20_000], ["40000 bytes", "32767"]),
        (["--name", "user=\udcff"], ["not UTF-8", "\\udcff"]),
    ],
)
def test_what_names_no_entity_is_a_usage_error_that_says_why(arguments: list[str], words: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        entity_of(parsed(*arguments))
    assert [word for word in words if word not in str(raised.value)] == []


def test_an_empty_name_is_taken_where_it_means_something() -> None:
    assert entity_of(parsed("--name", "client-id="), may_be_empty={"client-id"}) == client("")
    with pytest.raises(UsageError):
        entity_of(parsed("--name", "user="), may_be_empty={"client-id"})


def test_an_empty_name_is_told_the_default_as_its_own_option_has_it() -> None:
    with pytest.raises(UsageError, match=r"The default is --defaults user$"):
        entity_of(parsed("--name", "user="))
    with pytest.raises(UsageError, match=r"The default is user alone in --set$"):
        parse_settings(["user=:producer_byte_rate=1"])


def test_filters_are_a_selector_of_all_options() -> None:
    args = parsed("--prefix", "user=CN=a,", "--any", "client-id", "--strict")
    wanted = (("client-id", TypeMatch(kind=MatchKind.ANY)), ("user", TypeMatch(kind=MatchKind.PREFIX, text="CN=a,")))

    assert selector_of(args) == Selector(types=wanted, strict=True)
    assert selector_of(parsed()) == Selector(types=())
    assert selector_of(parsed("--named", "ip")) == Selector(types=(("ip", TypeMatch(kind=MatchKind.NAMED)),))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--any", "user", "--named", "user"],
        ["--any", "user,user"],
        ["--prefix", "user="],
        ["--prefix", "user"],
        ["--any", "ip", "--named", "user"],
        ["--any", "users"],
        ["--prefix", "usr=a"],
    ],
)
def test_filters_that_make_no_sense_are_usage_errors(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        selector_of(parsed(*arguments))


def test_the_literal_name_default_is_warned_of_and_the_default_is_not() -> None:
    (warning,) = literal_default_warnings(parsed("--names", "user=<default>", "--defaults", "client-id"))

    assert "--defaults user" in warning
