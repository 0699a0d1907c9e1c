"""One apply for every cluster of the manifests."""
