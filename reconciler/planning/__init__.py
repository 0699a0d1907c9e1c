"""From desired and current state to an ordered plan with a digest; pure."""
