"""The place of a finding that has one."""

from reconciler.model import Finding, Span


def span_of(finding: Finding) -> Span:
    """Fails for a finding without a place."""
    assert finding.span is not None, finding
    return finding.span
