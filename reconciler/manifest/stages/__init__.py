"""What manifests declare beyond plain numbers: one module for each stage on the way to the desired state of a cluster."""
