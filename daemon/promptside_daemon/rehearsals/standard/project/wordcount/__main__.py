"""The command line: `wordcount [-n N] [FILE…]`."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from wordcount.counting import count, top


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the most frequent words; 1 if a file could not be read."""
    parser = argparse.ArgumentParser(prog="wordcount", description="The most frequent words of a text.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="texts to read; none or - is standard input")
    parser.add_argument("-n", "--number", type=int, default=10, help="how many words (default: 10)")
    options = parser.parse_args(arguments)

    counts: Counter[str] = Counter()
    failed = False
    for name in options.files or ["-"]:
        try:
            counts += read(name)
        except (OSError, UnicodeDecodeError) as error:
            print(f"wordcount: {name}: {reason(error)}", file=sys.stderr)
            failed = True
    for word, number in top(counts, options.number):
        print(f"{number:6}  {word}")
    return 1 if failed else 0


def read(name: str) -> Counter[str]:
    """The counts of one file, line by line: a text may be larger than the memory."""
    if name == "-":
        return count(sys.stdin)
    with open(name, encoding="utf-8") as file:
        return count(file)


def reason(error: OSError | UnicodeDecodeError) -> str:
    """Why a file could not be read, for people."""
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)


if __name__ == "__main__":
    sys.exit(main())
