"""What Python runs of zconsole.pyz: unpacks it to a private directory, and starts it there.

Pythons that are too old must read this file, too: no syntax newer than 3.6 here.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this file comes without an installer that checks
    sys.exit("zconsole needs Python 3.11 or later, this is {}.{}".format(*sys.version_info[:2]))


def start() -> int:
    """Run the command line from the copy."""
    from pathlib import Path

    from zconsole.system.private_copy import private_copy
    from zconsole.system.safe_path import StateError

    try:
        sys.path[0] = str(private_copy(Path(__file__).parent))
    except StateError as error:
        sys.exit(f"zconsole: {error}")
    # What was read of the archive so far must not stay: the archive may go away.
    for name in [name for name in sys.modules if name.partition(".")[0] == "zconsole"]:
        del sys.modules[name]
    sys.path_importer_cache.clear()

    from zconsole.cli.main import main

    return main()


if __name__ == "__main__":
    sys.exit(start())
