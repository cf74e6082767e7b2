"""The only room that calls `from_pretrained`: checkpoints come in here and leave as portable bytes."""
