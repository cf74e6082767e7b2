"""Texts out of models that write: decoder-only and encoder-decoder, greedy, sampled or by beam search."""
