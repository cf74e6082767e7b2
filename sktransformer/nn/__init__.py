"""The Transformer in pure torch: nothing in this room knows of scikit-learn, tokenizers or checkpoints."""
