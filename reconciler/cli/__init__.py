"""The command line: options, exit codes, and one module for each command."""
