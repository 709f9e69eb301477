"""An independent judge of whole mappings and of what was exported from them.

Plain NumPy and SciPy; no code is shared with any step or with the writers.
"""

from snnmap.verification.exports import EXPORTS, verify_exports
from snnmap.verification.judge import verify_mapping, verify_tables

__all__ = ["EXPORTS", "verify_exports", "verify_mapping", "verify_tables"]
