"""Manifests: documents, overlays, the desired state of each cluster, and export back to YAML."""
