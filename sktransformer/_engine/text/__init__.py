"""From what users pass to documents, from documents to token windows and batches."""
