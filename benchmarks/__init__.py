"""Measurements of sktransformer beside what people use instead; see README.md for the newest table."""
