"""The way back from a run, by its report."""
