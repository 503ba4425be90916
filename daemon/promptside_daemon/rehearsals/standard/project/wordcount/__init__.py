"""The most frequent words of a text."""

from wordcount.counting import count, top, words

__all__ = ["count", "top", "words"]
