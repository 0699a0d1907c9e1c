"""Two runs of this tool on one cluster in ZooKeeper: never both at once, whatever becomes of them."""

from __future__ import annotations

import contextlib

import pytest
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE, make_acl

from reconciler.errors import AuthorizationError, BackendError, LockedError
from reconciler.model.plan import Alteration
from tests.builders import user
from tests.support.polling import wait_until
from tests.support.zookeeper_session import expire_session, zookeeper_cluster
from tests.support.zookeeper_tree import nodes_below

pytestmark = pytest.mark.kafka

ALICE = Alteration(entity=user("alice"), ops={"producer_byte_rate": 1024.0}, before={"producer_byte_rate": None})


def test_while_one_holds_the_lock_another_is_refused_and_told_who_it_is(place: str, witness: KazooClient) -> None:
    with zookeeper_cluster(place) as one, zookeeper_cluster(place) as other:
        with one.exclusive("alice@desk, process 1, since noon"):
            [(path, data)] = [(p, d) for p, d in nodes_below(witness, "/kafka-quotas").items() if p.count("/") == 3]
            assert data == b"alice@desk, process 1, since noon"
            assert witness.exists(path).ephemeralOwner == one._client.client_id[0]
            with pytest.raises(LockedError, match=r"alice@desk, process 1, since noon. Nothing"), other.exclusive("bob"):
                pytest.fail("two hold the lock")
            with pytest.raises(LockedError), other.exclusive("bob"):
                pytest.fail("two hold the lock")
        with other.exclusive("bob"):
            assert [data for data in nodes_below(witness, "/kafka-quotas").values() if data] == [b"bob"]
    assert "kafka-quotas" not in witness.get_children("/")


def test_a_run_whose_session_ended_has_lost_the_lock_and_writes_nothing_more(place: str, witness: KazooClient) -> None:
    with zookeeper_cluster(place) as one, zookeeper_cluster(place) as other, one.exclusive("alice"):
        expire_session(one, place)
        with other.exclusive("bob"):
            results = wait_until(lambda: answered(one))
            assert "the lock with it" in str(results[0].error)
            assert witness.exists("/config/users/alice") is None
            assert witness.get_children("/config/changes") == []
            assert [data for data in nodes_below(witness, "/kafka-quotas").values() if data] == [b"bob"]
    assert "kafka-quotas" not in witness.get_children("/")


def answered(cluster):
    """The answer once the connection is back."""
    with contextlib.suppress(BackendError):
        return cluster.alter([ALICE], validate_only=False)
    return None


def test_somebody_else_s_words_about_himself_are_shown_harmless_and_short(place: str, witness: KazooClient) -> None:
    hostile = "\x1b[2Jroot\nnothing wrong, go on" + "x" * 10_000
    with (
        zookeeper_cluster(place) as one,
        zookeeper_cluster(place) as other,
        one.exclusive(hostile),
        pytest.raises(LockedError) as raised,
        other.exclusive("bob"),
    ):
        pytest.fail("two hold the lock")
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1000


def test_where_no_lock_can_be_made_nothing_is_written(place: str, witness: KazooClient) -> None:
    witness.set_acls("/", [*READ_ACL_UNSAFE, make_acl("world", "anyone", delete=True, admin=True)])
    with (
        zookeeper_cluster(place) as one,
        pytest.raises(AuthorizationError, match=r"the lock cannot be taken: .*/kafka-quotas.*Log in"),
        one.exclusive("alice"),
    ):
        pytest.fail("no lock")
