"""Many rows in one binary value: Spark brings them to the right worker without ever looking at one of them."""
