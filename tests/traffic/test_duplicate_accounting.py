"""Mutations that are in the logs of brokers and of controllers, too."""

from __future__ import annotations

from reconciler.model import CONTROLLER, broker_words
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.judging.exact import smaller_account, targets_of_account
from reconciler.traffic.judging.grouping import Series, group_series
from reconciler.traffic.kinds import KEY_OF_KIND, Kind


def brokers_left(*series: tuple[int, Kind, int]) -> list[int]:
    """Of broker, kind and number of requests: the brokers of what is said."""
    found = [Series(broker=b, kind=k, user="ops", client_id="a", requests=n, amount=n) for b, k, n in series]
    grouping = group_series(found, None, {key.value: Resolver({}, key) for key in KEY_OF_KIND.values()})
    smaller = smaller_account(found)
    twice = frozenset() if smaller is None else targets_of_account(grouping, of_controller=smaller)
    return [target.broker for number, target in enumerate(grouping.targets) if number not in twice]


def test_the_account_with_more_topics_is_the_one_that_is_said() -> None:
    assert brokers_left((CONTROLLER, Kind.MUTATION, 5), (1, Kind.MUTATION, 3), (2, Kind.MUTATION, 1)) == [CONTROLLER]
    assert brokers_left((CONTROLLER, Kind.MUTATION, 5), (1, Kind.MUTATION, 3), (2, Kind.MUTATION, 2)) == [1, 2]


def test_one_account_alone_stays_and_so_does_everything_else() -> None:
    assert brokers_left((CONTROLLER, Kind.MUTATION, 5)) == [CONTROLLER]
    assert brokers_left((1, Kind.MUTATION, 5), (1, Kind.PRODUCE, 5)) == [1, 1]
    assert brokers_left((CONTROLLER, Kind.MUTATION, 1), (1, Kind.MUTATION, 1), (1, Kind.REQUEST, 9)) == [1, 1]


def test_the_controller_has_no_number_for_people() -> None:
    assert (broker_words(CONTROLLER), broker_words(3)) == ("the controller", "broker 3")
