"""`python -m promptside_daemon run`: returns when the daemon is ready, with --foreground when it has ended."""

import argparse
import sys

from promptside_daemon.daemon import make_core
from promptside_daemon.lifecycle import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="promptside daemon")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("run", help="start the daemon, unless one runs")
    verb.add_argument("--foreground", action="store_true", help="stay here, and log to the terminal too")
    return run(make_core, foreground=parser.parse_args().foreground)


if __name__ == "__main__":
    sys.exit(main())
