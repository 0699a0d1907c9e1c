"""Static settings of brokers and controllers that decide how quotas are enforced; the names are Kafka's."""

from __future__ import annotations

from typing import Final

WINDOW_NUM: Final = "quota.window.num"
WINDOW_SECONDS: Final = "quota.window.size.seconds"
CONTROLLER_WINDOW_NUM: Final = "controller.quota.window.num"
CONTROLLER_WINDOW_SECONDS: Final = "controller.quota.window.size.seconds"

BROKER_SETTINGS: Final = {WINDOW_NUM: 11, WINDOW_SECONDS: 1, CONTROLLER_WINDOW_NUM: 11, CONTROLLER_WINDOW_SECONDS: 1}
"""By name, Kafka's defaults."""
