"""Parts of `TransformerTokenClassifier`: words, sentences, tags and their schemes, chains, scores."""
