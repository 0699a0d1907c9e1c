"""Completion of commands, options and their values by a shell."""
