"""Fixtures for the tests that need a real Kafka broker.

One broker serves the whole run; it starts when the first test asks for it (about 3 s with the jars in the cache) and is stopped
at the end, also after a failure or an interrupt. Tests that change quotas take ``clean_kafka``. Tests that need ZooKeeper take
``zookeeper_kafka``, those that need yet another kind of cluster ``start_kafka``. What these fixtures need of kafka-python is
imported inside them: most tests need none of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec, ZooKeeperSpec

# Whoever starts the tests in the background may have them ignore interrupts, and so everything that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Some runners of tests set a width, and commands would wrap their lines to it.
os.environ.pop("COLUMNS", None)

# A deadline is a timed assertion: on a busy machine it says nothing about the code.
settings.register_profile("untimed", deadline=None, max_examples=40)
settings.register_profile("brief", deadline=None, max_examples=5, database=None)
settings.register_profile("many", deadline=None, max_examples=300)
settings.load_profile("untimed")

MOST_EXAMPLES = 120
"""Of a law in ``make test``, whatever it asks for; ``make large`` gives it all."""

SANDBOX_USERS = tuple(Login(name=name, password=f"{name}-secret") for name in ("alice", "bob", "carol"))


@pytest.fixture(autouse=True)
def signals_mean_what_they_meant() -> Iterator[None]:
    """A command that ran in this process and wrote notes signals until the process ends."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


ON_REQUEST = ("slow", "large", "interop", "soak")
SLOWEST_FIRST = ("spark", "kafka")
GROUPS = {
    "spark": "spark",
    "kafka_sandbox": "kafka",
    "zookeeper_sandbox": "kafka",
    "three_kafka_nodes": "three nodes",
    "bare_zookeeper": "zookeeper",
}
"""Of files whose tests share a server, by its fixture. One process runs a group, so each server starts once in a run."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with a marker of ``ON_REQUEST`` run only when the command line's ``-m`` names it; what takes longest begins first."""
    unasked = [marker for marker in ON_REQUEST if marker not in config.option.markexpr]
    left_out = [item for item in items if any(item.get_closest_marker(marker) for marker in unasked)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    profile = config.getoption("--hypothesis-profile", None)
    if profile != "many":
        for item in items:
            _limit_examples(getattr(item, "obj", None), settings().max_examples if profile == "brief" else MOST_EXAMPLES)
    grouped: dict[Path, str] = {}
    for fixture, group in GROUPS.items():
        for item in items:
            if fixture in getattr(item, "fixturenames", ()):
                grouped.setdefault(item.path, group)
    for item in items:
        if item.path in grouped and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(grouped[item.path]))
    # Three at a time, the last one's end is the end: that should not be a file of minutes.
    first = list(dict.fromkeys(GROUPS.values()))
    items.sort(
        key=lambda item: [
            first.index(group) if (group := group_of(item)) in first else len(first),
            *(item.get_closest_marker(mark) is None for mark in SLOWEST_FIRST),
        ]
    )
    if config.getoption("loadgroup", False):
        _name_groups(items)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the servers of a group after its last test: three idle nodes of Kafka take an eighth of a processor."""
    group = group_of(item)
    if group is None or (nextitem is not None and group_of(nextitem) == group):
        return
    for fixture in (name for name, its in GROUPS.items() if its == group):
        for found in item.session._fixturemanager.getfixturedefs(fixture, item) or ():
            found.finish(item._request)  # type: ignore[attr-defined] # of functions, which all tests here are


def group_of(item: pytest.Item) -> str | None:
    """Of the tests that share servers, which one process runs."""
    mark = item.get_closest_marker("xdist_group")
    return None if mark is None else str(mark.args[0])


def _name_groups(items: Sequence[pytest.Item]) -> None:
    """Tests of a group have ``@GROUP`` behind their names, where xdist looks for it.

    xdist 3.8 sets an attribute to that end which pytest 9.2 does not read. Without the names, each file is a group of its own.
    """
    for item in items:
        if group := group_of(item):
            item._id = item.id.parse(f"{item.nodeid}@{group}")


def _limit_examples(test: Any, most: int) -> None:
    """A law has at most so many examples, whatever its own settings ask for."""
    own = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is not None and own.max_examples > most:
        test._hypothesis_internal_use_settings = settings(own, max_examples=most)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadgroup``, tests without a group stay together with those of their file, whose fixtures they share."""
    from xdist.scheduler import LoadGroupScheduling

    class GroupOrFile(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = super()._split_scope(nodeid)
            return group if group != nodeid else nodeid.partition("::")[0]

    return GroupOrFile(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The processes of xdist have ended, and nothing runs any more when the tests have."""
    from tests.support.warm_process import WarmProcess

    if (xdist := session.config.pluginmanager.getplugin("dsession")) is not None:
        WarmProcess.end(xdist.nodemanager.testrunuid)


@pytest.fixture(scope="session")
def kafka_sandbox() -> Iterator[Sandbox]:
    """One KRaft node of the default version: users alice, bob and carol on the SASL listener, request log on."""
    from reconciler.features.sandbox.cluster import running

    with running(SandboxSpec(users=SANDBOX_USERS, request_log=True, heap_mb=768)) as sandbox:
        yield sandbox


@pytest.fixture
def clean_kafka(kafka_sandbox: Sandbox) -> Sandbox:
    """The shared broker without a single client quota."""
    from tests.support import raw_quotas

    raw_quotas.remove_all(kafka_sandbox.bootstrap_servers)
    return kafka_sandbox


@pytest.fixture(scope="session")
def three_kafka_nodes() -> Iterator[Any]:
    """``ThreeNodes`` whose controller gives up on a broker after 3 s, not 9: the same things happen sooner."""
    from tests.support.three_nodes import three_nodes

    sooner = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with three_nodes(SandboxSpec(nodes=3, heap_mb=320, properties=sooner)) as nodes:
        yield nodes


@pytest.fixture
def nodes(three_kafka_nodes: Any) -> Any:
    """The shared nodes: all run, and none has a client quota."""
    from tests.support import raw_quotas

    three_kafka_nodes.mend()
    raw_quotas.remove_all(three_kafka_nodes.servers())
    return three_kafka_nodes


@pytest.fixture(scope="session")
def zookeeper_sandbox() -> Iterator[Sandbox]:
    """One broker of 3.9.2 in ZooKeeper mode, below a chroot, with the same users and the request log on."""
    from reconciler.features.sandbox.cluster import running

    server = ZooKeeperSpec(chroot="/clusters/one")
    with running(SandboxSpec(users=SANDBOX_USERS, request_log=True, zookeeper=server)) as sandbox:
        yield sandbox


@pytest.fixture
def zookeeper_kafka(zookeeper_sandbox: Sandbox) -> Sandbox:
    """The shared broker in ZooKeeper mode without a single user, client or address in ``/config``; itself it forgets them too."""
    from tests.support import raw_quotas, zookeeper_tree
    from tests.support.polling import wait_until

    assert zookeeper_sandbox.zookeeper is not None
    with zookeeper_tree.zookeeper_client(zookeeper_sandbox.zookeeper) as client:
        zookeeper_tree.remove_all(client)
    wait_until(lambda: raw_quotas.describe(zookeeper_sandbox.bootstrap_servers) == {})
    return zookeeper_sandbox


@pytest.fixture
def start_kafka() -> Iterator[Callable[[SandboxSpec], Sandbox]]:
    """Starts further sandboxes, of any spec; each is stopped when the test ends."""
    from reconciler.features.sandbox.cluster import running

    with contextlib.ExitStack() as stack:
        yield lambda spec: stack.enter_context(running(spec))
