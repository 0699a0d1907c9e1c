"""A new repository of manifests, with its pipelines."""
