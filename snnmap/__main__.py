"""``python -m snnmap``."""

import sys

from snnmap.cli import main

if __name__ == "__main__":
    sys.exit(main())
