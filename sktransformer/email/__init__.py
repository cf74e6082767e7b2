"""E-mails before they are classified: reading, cleaning, languages. Nothing here needs torch."""

from .cleaner import EmailCleaner, Removed
from .mailbox import read_mailbox

__all__ = ["EmailCleaner", "Removed", "read_mailbox"]
