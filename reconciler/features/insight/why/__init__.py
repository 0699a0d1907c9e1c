"""Why a client was throttled at a time: who filled which quota, and who set it."""
