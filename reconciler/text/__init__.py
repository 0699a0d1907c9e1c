"""Text for people and the exact text of numbers: one formatter of byte rates, one rule for quotes, one for long lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.text.amounts import (
        amount,
        amount_part,
        bound_text,
        duration,
        expiry_text,
        factor,
        length_text,
        live_expiry_text,
        moment_text,
        number_text,
        number_to_json,
        percent_text,
        progress_amount,
        rate,
        rate_part,
        short_date,
        short_moment,
    )
    from reconciler.text.quoting import (
        all_changes,
        count_of,
        did_you_mean,
        entity_text,
        list_entities,
        list_some,
        near_miss,
        rebalance_text,
        recommended_text,
        safe_text,
        shown,
        shown_part,
        unit_text,
        word,
    )

__getattr__ = lazy_face(__name__)
