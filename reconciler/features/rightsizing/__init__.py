"""Limits beside what a long history used of them: which to raise, to lower or to drop, as edits of the manifests."""
