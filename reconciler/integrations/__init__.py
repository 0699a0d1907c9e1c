"""Where results meet other systems: each sub-package knows one of them."""
