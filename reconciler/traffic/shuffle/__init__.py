"""The shuffle: rows travel in blocks, and all rows of a group meet in one partition, in the order of their keys."""
