"""Parts of `TransformerQuestionAnswerer`: answers, windows of contexts, spans of tokens, agreement."""
