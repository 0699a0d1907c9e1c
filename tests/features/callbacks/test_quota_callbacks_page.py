"""The page about quota callbacks names every part of the protocol, and the example has them."""

from __future__ import annotations

import runpy
from pathlib import Path

from reconciler.features.callbacks.callback import METHODS, QuotaCallback, QuotaType, callback_limits
from reconciler.model import BucketName
from reconciler.model.entity import Entity
from tests.support.pages import part

ROOT = Path(__file__).parents[3]
PAGE = part("totals-and-groups", "Quota callbacks")
PRODUCE = "producer_byte_rate"


def test_every_method_and_type_is_on_the_page() -> None:
    assert [method for method in METHODS if f"`{method}(" not in PAGE] == []
    assert [quota_type for quota_type in QuotaType if f"`{quota_type.value}`" not in PAGE] == []


def test_the_example_shares_limits_by_group() -> None:
    made = runpy.run_path(str(ROOT / "examples" / "group-quotas" / "quota_groups.py"))["GroupQuotas"]({"separator": "-"})
    assert isinstance(made, QuotaCallback)
    quotas = {
        Entity.of({"user": "payments-"}): {PRODUCE: 5.0},
        Entity.of({"user": "-"}): {PRODUCE: 7.0},
        Entity.of({"user": "payments-api", "client-id": "x"}): {PRODUCE: 1.0},
    }
    table = callback_limits(lambda: made, quotas, {1: None})[PRODUCE].at(1)
    found = {user: table.resolve(user, "any") for user in ("payments-api", "payments-batch", "orders-api", "alice")}
    group = BucketName(user="", client_id="", other=(("group", "payments"),))
    assert [found[user].bucket for user in ("payments-api", "payments-batch")] == [group, group]
    assert [found[user].value for user in found] == [5.0, 5.0, 7.0, None]
    made.remove_quota(QuotaType.PRODUCE, Entity.of({"user": "payments-"}))
    assert made.quota_limit(QuotaType.PRODUCE, {"group": "payments"}) == 7.0
