"""The cyclic garbage collector: off inside, afterwards as before, and nothing that it would have collected is kept."""

import gc
import weakref

import pytest

from reconciler.collector import pause_collector


class Knot:
    """Refers to itself."""

    def __init__(self) -> None:
        self.me = self


def test_it_is_off_inside_and_what_is_tied_in_a_knot_is_found_later() -> None:
    with pause_collector():
        assert not gc.isenabled()
        inside = weakref.ref(Knot())
        with pause_collector():
            pass
        assert not gc.isenabled(), "the inner one leaves it as it was"
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert inside() is None


def test_it_is_on_again_after_a_failure_and_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    try:
        with pytest.raises(KeyError), pause_collector():
            raise KeyError
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
