"""The public Python interface: what the commands do, for scripts and notebooks."""
