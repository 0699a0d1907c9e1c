"""Exit codes, as scripts rely on them."""

from typing import Final

DONE: Final = 0
NOT_DONE: Final = 1
"""Could not finish, and nothing was written."""
DIFFERENCES: Final = 2
"""Only with ``--detailed-exitcode``."""
REFUSED: Final = 3
PARTIAL: Final = 4
"""Something was written, and the run did not complete or could not be verified or reported."""
USAGE: Final = 64
INTERRUPTED: Final = 130
