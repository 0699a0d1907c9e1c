"""Blocks of a Prometheus server, filled with the gauges of quota sensors by ``promtool``."""

from __future__ import annotations

import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.measure import once

START_S: Final = 1_763_424_000
"""2025-11-18T00:00:00Z."""
_BLOCK_S: Final = 7200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """How much is recorded."""

    brokers: int
    series: int
    """Of one broker."""
    hours: int
    step_s: int

    @property
    def samples(self) -> int:
        """Of all series."""
        return self.brokers * self.series * (self.hours * 3600 // self.step_s)

    @property
    def name(self) -> str:
        """Of a folder."""
        return f"{self.brokers}x{self.series}-{self.hours}h-{self.step_s}s"


def fill(folder: Path, size: Sampled) -> Path:
    """The data folder of a server; made once, for all later runs."""
    data = folder / size.name
    if (data / "complete").exists():
        return data
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    text = data / "samples.txt"
    for begin in range(0, size.hours * 3600, _BLOCK_S):
        _write(text, size, START_S + begin, min(_BLOCK_S, size.hours * 3600 - begin))
        once("promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(text), str(data))
        print(f"filled {begin // 3600 + 2} of {size.hours} hours", file=sys.stderr, flush=True)
    text.unlink()
    (data / "complete").touch()
    return data


def _write(path: Path, size: Sampled, start_s: int, length_s: int) -> None:
    rng = random.Random(start_s)
    # A client is idle for a third of the time; its rates are doubles with all their digits.
    pool = [repr(rng.random() * 2_000_000) if rng.random() > 0.3 else "0.0" for _ in range(100_003)]
    times = range(start_s, start_s + length_s, size.step_s)
    with path.open("w") as file:
        file.write("# TYPE kafka_server_quota_byte_rate gauge\n")
        for broker in range(size.brokers):
            stamps = [f" {at + 0.001 * broker:.3f}\n" for at in times]
            for number in range(size.series):
                labels = (
                    f'broker_id="{broker}",clientId="app-{number}",env="prod",instance="kafka-{broker}:7071",job="kafka",'
                    f'resource="Produce",user="user-{number % 200}"'
                )
                name = f"kafka_server_quota_byte_rate{{{labels}}} "
                at = rng.randrange(len(pool) - len(stamps))
                file.write("".join([name + value + stamp for value, stamp in zip(pool[at:], stamps, strict=False)]))
        file.write("# EOF\n")


def require_programs() -> None:
    """End unless the server and its tool are installed."""
    if missing := [name for name in ("prometheus", "promtool") if shutil.which(name) is None]:
        sys.exit(f"{missing[0]} is not installed: apt install prometheus")
