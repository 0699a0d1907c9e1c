"""Comments on GitLab merge requests, through its REST API (gitlab.com or a server of your own)."""
