"""The estimators, one task a file."""
