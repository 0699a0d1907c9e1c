"""How near quota groups are to their limits now."""
