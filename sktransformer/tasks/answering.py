"""Questions to answers that are pieces of their contexts."""
