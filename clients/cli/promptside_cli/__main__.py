"""`promptside …`: finds the verb, reads its words, calls it, and turns what went wrong into an exit code.

What no verb needs is not imported here, so that a short call stays short (PERFORMANCE P6s).
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the executable."""
    words = sys.argv[1:]
    if words == ["--version"]:
        from promptside_protocol import __version__  # noqa: PLC0415  # see above

        print(f"promptside {__version__}")
        sys.exit(0)
    from promptside_cli.call import call  # noqa: PLC0415  # see above

    try:
        code = call(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output is gone (`| head`): that is no fault, and nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
