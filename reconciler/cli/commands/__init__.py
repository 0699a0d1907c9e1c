"""One module for each command. They import inside functions, so that ``--help`` starts fast."""
