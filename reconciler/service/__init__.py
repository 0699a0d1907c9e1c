"""The long-running reconciler: watches manifests and a cluster, tells what differs, and writes when it was told to."""
