"""``spec.brokerSettings`` and ``spec.quotaCallback`` of a Cluster manifest."""

from __future__ import annotations

import pytest

from reconciler.manifest.documents import ClusterDocument
from reconciler.manifest.reading import FileContent, read_documents
from reconciler.model.cluster import CallbackClass, ClusterSpec

CLUSTER = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n  prune: never\n"


def read(*lines: str) -> FileContent:
    return read_documents((CLUSTER + "".join(f"  {line}\n" for line in lines)).encode(), "c.yaml")


def spec(*lines: str) -> ClusterSpec:
    content = read(*lines)
    assert content.findings == ()
    (document,) = content.documents
    assert isinstance(document, ClusterDocument)
    return document.spec


def test_settings_are_read_by_kafkas_names() -> None:
    found = spec("brokerSettings:", "  quota.window.num: 31.0", "  controller.quota.window.size.seconds: 2").brokers.settings
    assert found == {"quota.window.num": 31, "controller.quota.window.size.seconds": 2}
    assert spec().brokers.settings == {}


def test_a_callback_has_its_options_as_they_are_written() -> None:
    found = spec(
        "quotaCallback:", "  class: quota_groups.callback:Groups", "  options: {separator: _, depth: 02}"
    ).brokers.callback
    assert found == CallbackClass(name="quota_groups.callback:Groups", options={"separator": "_", "depth": "02"})
    assert spec().brokers.callback is None
    plugin = spec("quotaCallback: {class: kafkaquotas.callback.GroupQuotaCallback}").brokers.callback
    assert plugin == CallbackClass(name="kafkaquotas.callback.GroupQuotaCallback")


@pytest.mark.parametrize(
    "line",
    [
        "brokerSettings: {quota.window.num: 0}",
        "brokerSettings: {quota.window.num: 1.5}",
        'brokerSettings: {quota.window.num: "11"}',
        "brokerSettings: {quota.windows: 11}",
        "brokerSettings: {}",
        "quotaCallback: {class: justamodule}",
        "quotaCallback: {class: kafkaquotas.callback.Other}",
        'quotaCallback: {class: "os:system(1)"}',
        'quotaCallback: {class: "../evil:Groups"}',
        "quotaCallback: {options: {a: b}}",
    ],
)
def test_what_is_neither_is_an_error(line: str) -> None:
    content = read(line)
    assert content.findings
    assert all(finding.span is not None and finding.span.line == 6 for finding in content.findings)
