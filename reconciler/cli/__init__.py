"""The command line: options, exit codes, one small file a command."""
