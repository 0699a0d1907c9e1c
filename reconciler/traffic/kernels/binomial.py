"""The interval of a share of which only samples are known.

The Wilson score interval for 95 %; with no hit at all the rule of three: the share is at most ``3 / samples`` in 95 of 100 such
histories. Both take samples as independent. Gauges that are nearer to each other than the window they are computed over share
requests, so ``independent`` counts them as fewer.

Sources: E. B. Wilson, Journal of the American Statistical Association 22 (1927); J. A. Hanley and A. Lippman-Hand, JAMA 249
(1983).
"""

from __future__ import annotations

import math
from typing import Final

METHOD: Final = "Wilson, 95 %, and the rule of three at zero"
_Z: Final = 1.959963984540054
"""Of a standard normal variable, the quantile of 97.5 %."""
_RULE_OF_THREE: Final = 3.0


def share_interval(hits: int, samples: int, independent: float | None = None) -> tuple[float, float]:
    """The least and the largest share, 0 to 1. ``independent``: how many of the samples count, all of them if not given.

    Raises ``ValueError`` for hits that are not among the samples.
    """
    if not 0 <= hits <= samples:
        raise ValueError(f"{hits} of {samples} samples")
    count = float(samples) if independent is None else max(min(1.0, samples), min(independent, samples))
    if count <= 0:
        return 0.0, 1.0
    if not hits:
        return 0.0, min(1.0, _RULE_OF_THREE / count)
    share = hits / samples
    middle = (share + _Z * _Z / (2 * count)) / (1 + _Z * _Z / count)
    half = _Z / (1 + _Z * _Z / count) * math.sqrt(share * (1 - share) / count + _Z * _Z / (4 * count * count))
    return max(0.0, middle - half), 1.0 if hits == samples else min(1.0, middle + half)
