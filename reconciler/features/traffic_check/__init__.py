"""``tool check-traffic``: the rows of a producer against the canonical traffic schema."""
