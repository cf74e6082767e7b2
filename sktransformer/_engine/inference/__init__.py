"""Forward passes over token-sorted batches, rows restored to the order they came in."""
