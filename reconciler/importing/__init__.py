"""Quota files of other tools into entities and values: jikkou, Terraform, helmsman, kafka-configs. Nothing is ever guessed."""
