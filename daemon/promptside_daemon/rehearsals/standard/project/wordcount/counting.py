"""What a word is, and how often it occurs."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

# Letters of any script, with apostrophes inside: "don't" is one word, "'tis" is "tis".
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def words(lines: Iterable[str]) -> Iterator[str]:
    """The words of some lines, case folded."""
    for line in lines:
        for found in WORD.finditer(line):
            yield found[0].casefold()


def count(lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs."""
    return Counter(words(lines))


def top(counts: Counter[str], limit: int) -> list[tuple[str, int]]:
    """The most frequent words; those that occur equally often stand in alphabetical order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]
