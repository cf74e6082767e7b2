"""Data sets read without a network: small ones that ship with the package, and files that you have."""

from ._french_emails import load_french_emails
from .squad import load_squad

__all__ = ["load_french_emails", "load_squad"]
