"""Python's search for cycles: off inside, afterwards as before, and nothing is kept that it would have found."""

import gc
import weakref

import pytest

from reconciler.traffic.no_cycles import no_search_for_cycles


class Knot:
    """Refers to itself."""

    def __init__(self) -> None:
        self.me = self


def test_it_is_off_inside_and_what_is_tied_in_a_knot_is_found_later() -> None:
    with no_search_for_cycles():
        assert not gc.isenabled()
        inside = weakref.ref(Knot())
        with no_search_for_cycles():
            pass
        assert not gc.isenabled(), "the inner one leaves it as it was"
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert inside() is None


def test_it_is_on_again_after_a_failure_and_what_somebody_froze_stays_so() -> None:
    gc.freeze()
    try:
        with pytest.raises(KeyError), no_search_for_cycles():
            raise KeyError
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
