"""History in one-second cells: small, quick to judge, added to piece by piece."""
