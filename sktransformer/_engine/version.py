"""The version, kept here so that any room may read it without importing the package root."""

__version__ = "0.1.0.dev0"
