"""Per-second totals: a recorded history that is small, quick to judge, and added to file by file."""
