"""``python -m reconciler``."""

import os
import sys

# pathlib may lie in the directory that is taken off the path here.
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if sys.path[0] == os.getcwd() != _OURS:
    # Python put the working directory there, which may be the work tree of a pull request: no module of it may run.
    del sys.path[0]

from reconciler.cli.main import entry_point

entry_point()
