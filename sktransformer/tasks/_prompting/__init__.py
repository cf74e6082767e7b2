"""Prompts for `PromptClassifier`: how they are put together, tokenized and scored."""
