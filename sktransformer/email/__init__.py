"""E-mails before they are classified: cleaning. Nothing here needs torch."""

from .cleaner import EmailCleaner, Removed

__all__ = ["EmailCleaner", "Removed"]
