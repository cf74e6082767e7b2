"""E-mails before they are classified: reading, cleaning, languages. Nothing here needs torch."""

from .cleaner import EmailCleaner, Removed
from .languages import LanguageRouter
from .mailbox import read_mailbox

__all__ = ["EmailCleaner", "LanguageRouter", "Removed", "read_mailbox"]
