"""Points printed by Kafka's own Rate class: (time in ms, amount, expected rate, window, throttle); None is not stated."""

import pytest

from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Era, SampledRate, Window, java_round, throttle_ms

QUOTA = 1000.0

BOTH = {
    "A": [
        (0, 5000, 500, 10000, 0),
        (0, 6000, 1100, 10000, 1000),
        (500, 0, 1047.6190476190477, 10500, 500),
        (1000, 1000, 1200, 10000, 2000),
    ],
    "B": [
        *((s * 1000, 2000, None, None, t) for s, t in enumerate([0, 0, 0, 0, 0, 2000, 4000, 6000, 8000, 10000])),
        (10000, 2000, 2200, 10000, 12000),
        (11000, 2000, None, None, 12000),
        (12000, 2000, None, None, 12000),
        (12500, 2000, 2285.714285714286, 10500, 13500),
    ],
    "C": [
        (0, 20000, 2000, None, 10000),
        (9999, 0, 1818.3471224656787, 10999, 9001),
        (10000, 0, 2000, 10000, 10000),
        (10999, 0, 1818.3471224656787, 10999, 9001),
        (11000, 0, 0, 10001, 0),
    ],
    "H": [
        (t, 3000, None, None, thr)
        for t, thr in zip(
            [0, 1500, 3100, 4700, 6300, 7900, 9500, 11100, 12700], [0, 0, 0, 1300, 4700, 7100, 10500, 10400, 10400], strict=True
        )
    ],
}
BY_ERA = {
    ("C2", Era.OVERLAPPING): [
        (0, 1, None, None, 0),
        (900, 20000, 1834.954128440367, 10900, 9101),
        (11000, 0, 1818.2727272727273, 11000, 9001),
        (11899, 0, 1680.8975544163377, 11899, 8102),
        (11900, 0, 0, 10900, 0),
    ],
    ("C2", Era.DROPPING): [
        (0, 1, None, None, 0),
        (900, 20000, 1834.954128440367, 10900, 9101),
        (11000, 0, 0, 10000, 0),
        (11899, 0, 0, 10899, 0),
        (11900, 0, 0, 10900, 0),
    ],
}
WIDE = [
    (0, 50000, 1666.6666666666667, 30000, 20000),
    (10000, 0, 1250, 40000, 10000),
    (30000, 1000, 1700, 30000, 21000),
    (45000, 1000, 1155.5555555555557, 45000, 7000),
]
WIDE_LAST = {Era.OVERLAPPING: (60000, 1000, 883.3333333333334, 60000, 0), Era.DROPPING: (60000, 1000, 100, 30000, 0)}

CASES = [
    *((f"{name} {era.name}", Window(era=era), points) for name, points in BOTH.items() for era in Era),
    *((f"{name} {era.name}", Window(era=era), points) for (name, era), points in BY_ERA.items()),
    *((f"I {era.name}", Window(samples=2, sample_ms=30000, era=era), [*WIDE, WIDE_LAST[era]]) for era in Era),
]


@pytest.mark.parametrize(("window", "points"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_model_reproduces_kafkas_rate_window_and_throttle(
    window: Window, points: list[tuple[int, int, float | None, int | None, int]]
) -> None:
    sensor = SampledRate(window)
    for at, amount, rate, width, throttle in points:
        sensor.record(amount, at)
        measured, measured_width = sensor.measure(at)
        if rate is not None:
            assert measured == pytest.approx(rate, rel=1e-9)
        if width is not None:
            assert measured_width == width
        assert throttle_ms(measured, measured_width, QUOTA) == throttle, at


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (0.5, 1),
        (-0.5, 0),
        (0.49999999999999994, 0),
        (2.5, 3),
        (float("nan"), 0),
        (float("inf"), 2**63 - 1),
        (4503599627370497.0, 4503599627370497),
    ],
)
def test_rounding_is_javas(value: float, rounded: int) -> None:
    assert java_round(value) == rounded


def test_numeric_traps_behave_as_in_kafka() -> None:
    assert throttle_ms(1_000_000.0, 10_000, 1.0) == 1410055408, "10 MB at 1 B/s wraps around 32 bits"
    assert throttle_ms(5.0, 10_000, 0.0) == -1
    assert throttle_ms(5.0, 10_000, float("nan")) == 0


def test_the_fetch_cap_is_ten_seconds_of_the_limit() -> None:
    assert DEFAULT_WINDOW.fetch_cap(1000.5) == 10005
