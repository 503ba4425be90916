"""`promptside lsp`: the language server on standard input and output."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys


def main() -> int:
    """Serve until the editor is gone."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    gc.disable()  # the import makes 100,000 objects that all stay; looking at them again and again takes time
    from promptside_server.server import serve  # noqa: PLC0415  # so that `--help` of the terminal costs nothing

    gc.enable()
    gc.freeze()
    code = asyncio.new_event_loop().run_until_complete(serve())
    logging.shutdown()
    # At once: a thread that still starts a daemon must not hold up an editor that closes.
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
