"""``kafka-quotas`` with smaller requests: three take 102 short names, which costs a broker a tenth of 3 MiB of names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

VARIABLE: Final = "TESTS_REQUEST_BYTES"


def obey(environ: Mapping[str, str]) -> None:
    """Limit each request of this process to the bytes in ``VARIABLE``, if it is set."""
    from reconciler.apply.writing import ChunkLimits

    if size := environ.get(VARIABLE):
        defaults = ChunkLimits.__init__.__kwdefaults__
        assert defaults is not None
        assert "size" in defaults
        defaults["size"] = int(size)


if __name__ == "__main__":
    from reconciler.cli.main import entry_point

    obey(os.environ)
    entry_point()
