"""``python -m reconciler``."""

import os
import sys

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib may lie in that directory
if sys.path[0] == os.getcwd() != _OURS:  # noqa: PTH109 - the same
    # Python put the working directory there, which may be the work tree of a pull request: no module of it may run.
    del sys.path[0]

from reconciler.cli.main import entry_point  # noqa: E402 - after that

entry_point()
