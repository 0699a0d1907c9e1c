"""One entity changed by hand, for good or for a while."""
