"""What the generators share: texts out of texts."""
