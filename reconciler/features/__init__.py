"""What the core can live without: one folder for each feature, with everything it has, and ``hooks.py`` for what it adds."""
