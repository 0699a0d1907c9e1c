"""The wheel of this project, as ``spark-submit`` takes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    """Build it into ``folder``."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built
