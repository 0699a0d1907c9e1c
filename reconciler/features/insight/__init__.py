"""What quota groups do against their limits: ``why``, ``headroom``, ``report`` and ``doctor``."""
