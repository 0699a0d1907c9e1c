"""Comments on pull requests and merge requests of GitHub and GitLab, and the stored references that their runs trust."""
