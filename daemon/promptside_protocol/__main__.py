"""`python -m promptside_protocol ts|lua` prints the protocol as types of that language."""

import sys

from promptside_protocol.generate import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
