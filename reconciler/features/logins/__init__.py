"""Logins with OAUTHBEARER and AWS_MSK_IAM: tokens in files and of endpoints, and IAM identities."""
