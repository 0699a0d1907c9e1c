"""From recorded requests and two sets of quotas to verdicts."""
