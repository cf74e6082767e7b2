"""Parts of `TransformerEmbedder`."""
