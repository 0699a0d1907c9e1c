"""Changes by hand: one entity, for good or for a while, and the way back from a run."""
