"""Small data sets that ship with the package, read without a network."""

from ._french_emails import load_french_emails

__all__ = ["load_french_emails"]
