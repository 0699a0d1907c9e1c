"""Progress of a step on Spark: one count over all stages that are known so far, which never falls."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.traffic.spark_jobs import StageCount


@dataclass(slots=True)
class Reader:
    """Keeps what is reported."""

    reported: list[object] = field(default_factory=list)

    def step(self, message: str) -> None:
        self.reported.append(message)

    def count(self, done: float, total: float | None = None, unit: str = "") -> None:
        self.reported.append((done, total, unit))


def test_stages_that_ended_stay_counted_until_the_next_step() -> None:
    reader = Reader()
    counted = StageCount(reader)
    counted.step("reading")
    counted.update({1: (3, 11)})
    # Stage 1 ended between two looks, and stage 2 began.
    counted.update({2: (0, 4)})
    # The same step goes on: rows are read twice.
    counted.step("reading")
    counted.update({2: (4, 4), 3: (1, 11)})
    counted.update({})
    counted.step("judging")
    counted.update({})
    counted.update({4: (1, 2)})
    assert reader.reported == [
        "reading",
        (3, 11, "tasks"),
        (11, 15, "tasks"),
        "reading",
        (16, 26, "tasks"),
        (26, 26, "tasks"),
        "judging",
        (1, 2, "tasks"),
    ]
