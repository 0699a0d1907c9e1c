"""Comments on GitHub pull requests, through its REST API (github.com or GitHub Enterprise)."""
