"""Entry point of ``python -m zconsole``."""

from __future__ import annotations

import sys

from zconsole.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
