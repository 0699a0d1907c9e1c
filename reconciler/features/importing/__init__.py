"""Quota files of declarative tools into entities and values: jikkou, Strimzi, Terraform. Everything else in a file is named."""
