"""DA-6: keys and tokens are replaced by `[redacted]` in everything that is derived from a transcript.

Known shapes are found by pattern, the secrets of the agent's own environment by value. Patterns are
conservative: code that talks about passwords stays readable.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

REDACTED = "[redacted]"


class Redactor:
    """Redacts with the patterns and with `values`, the exact secrets of one environment."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = sorted({value for value in values if value}, key=len, reverse=True)
        alternatives = "|".join(re.escape(value) for value in self._values)
        self._exact = re.compile(alternatives) if alternatives else None

    def text(self, text: str) -> str:
        """`text` without its secrets; the same object if it has none."""
        if self._exact is not None and self._exact.search(text):
            text = self._exact.sub(REDACTED, text)
        if not _HINT.search(text):
            return text
        return _SECRET.sub(_blanked, text)

    def data(self, data: Any) -> Any:
        """JSON-like data without the secrets in its strings, at any depth; keys too."""
        match data:
            case str():
                return self.text(data)
            case dict():
                return {self.data(key): self.data(value) for key, value in data.items()}
            case list() | tuple():
                return type(data)(self.data(item) for item in data)
            case _:
                return data

    def stream(self) -> "RedactedStream":
        """For text that comes in pieces."""
        return RedactedStream(self)

    def settled(self, text: str) -> int:
        """How much of `text` can be redacted for good, whatever comes behind it.

        Held back are the last word, what began before it and may go on (a key block, `password:`, `Bearer`),
        and an end that is the beginning of a known value.
        """
        cut = len(text)
        if text and not text[-1].isspace():
            # A word without an end is not held back for ever: no key is that long, and time would run away.
            cut -= min(_LONGEST_WORD, len(text.rsplit(None, 1)[-1]))
        spans = [span.span() for span in _SECRET.finditer(text)]
        # One step back can bring the cut into another span; "password: Bearer x" needs two.
        for _ in range(3):
            before = cut
            for start, end in spans:
                if start < cut and (cut < end or end == len(text)):
                    cut = start
            if opened := _OPENED.search(text, max(0, cut - _LONGEST_OPENING), cut):
                cut = opened.start()
            for value in self._values:
                cut = _begun(text, value, cut)
            if cut == before:
                break
        return cut


class RedactedStream:
    """Text in, redacted text out, in pieces; a secret that two pieces share is found all the same."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now; the rest waits for the next piece or for `flush`."""
        self._held += piece
        cut = self._redactor.settled(self._held)
        shown, self._held = self._held[:cut], self._held[cut:]
        return self._redactor.text(shown)

    def flush(self) -> str:
        """What was held back, now that no more will come."""
        held, self._held = self._held, ""
        return self._redactor.text(held)


def secret_values(environment: Mapping[str, str]) -> frozenset[str]:
    """The values of variables whose names say that they hold a secret.

    Shorter ones than 8 characters are left out: they are switches, and would be found everywhere.
    """
    return frozenset(
        value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value.strip()) >= 8
    )


_LONGEST_WORD = 4096
_LONGEST_OPENING = 4096
_SECRET_NAME = re.compile(r"(?i)(?:_|^)(?:API_?KEY|KEY|TOKEN|SECRET|CREDENTIALS?)$|PASSWORD|PASSWD|_SECRET_")

_PEM_BEGIN = r"-----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY-----"
_PEM_GAP = r"(?:\s|\\[nr]|[A-Za-z-]{1,40}:[^\n]{0,200}\n){0,200}"
_NAME = r"(?i: password | passwd | secret | api[_-]?key | access[_-]?key | token )"

# Each alternative has the secret in a group called s…; what stands before it is kept, to say what was there.
# A key block needs lines of key behind its head: an agent may write about one. Every repetition has an end,
# so that no text, however it is made, takes more than its length in time.
_SECRET = re.compile(
    rf"""
      (?P<s1> {_PEM_BEGIN} {_PEM_GAP}
              (?: [A-Za-z0-9+/=]{{16,200}}+ (?:\s|\\[nr]){{0,9}} ){{1,300}}+ [A-Za-z0-9+/=]{{0,200}}+
              (?:\s|\\[nr]){{0,9}}
              (?: -----END[ ][A-Z0-9 ]{{0,40}}PRIVATE[ ]KEY----- | -[A-Z0-9 -]{{0,60}}\Z )? )
    | (?<![A-Za-z0-9]) (?P<s2>
          sk-[A-Za-z0-9_-]{{16,400}}
        | gh[pousr]_[A-Za-z0-9]{{16,400}}
        | github_pat_[A-Za-z0-9_]{{16,400}}
        | glpat-[A-Za-z0-9_-]{{16,400}}
        | (?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9])
        | AIza[A-Za-z0-9_-]{{30,400}}
        | xox[a-z]-[A-Za-z0-9-]{{10,400}}
        | npm_[A-Za-z0-9]{{30,400}}
        | pypi-[A-Za-z0-9_-]{{30,400}}
        | eyJ[A-Za-z0-9_-]{{8,1000}}\.[A-Za-z0-9_-]{{8,4000}}(?:\.[A-Za-z0-9_-]{{0,1000}})?
      )
    | (?i:\b bearer) \s{{1,20}} (?P<s3> (?=\S{{0,400}}\d) [A-Za-z0-9._~+/=-]{{16,4000}} )
    | :// [^\s/:@'"]{{0,200}} : (?P<s4> [^\s/@'"]{{1,400}} ) @
    | {_NAME} ["']? \s{{0,20}} [:=] \s{{0,20}} (?P<quote>["']) (?P<s5> [^\s"']{{8,4000}} ) (?P=quote)
    | {_NAME} = (?P<s6> (?=\S{{0,400}}\d) [^\s"'()\{{\}}<>;,$]{{8,4000}} )
    """,
    re.VERBOSE,
)
_GROUPS = ("s1", "s2", "s3", "s4", "s5", "s6")

# A cheap look first: without one of these no alternative above can match.
_HINT = re.compile(
    r"PRIVATE KEY|sk-|gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|AIza|xox|npm_|pypi-|eyJ|://"
    r"|(?i:bearer|password|passwd|secret|key|token)"
)

# The beginning of an alternative that goes on behind a space: it must not be cut off from what follows.
_OPENED = re.compile(
    rf"""
      -----BEGIN[ ][A-Z0-9 ]{{0,40}} \Z
    | {_PEM_BEGIN} {_PEM_GAP} (?:[A-Za-z-]{{1,40}}:[^\n]{{0,200}})? \Z
    | (?i:\b bearer) \s{{0,20}} \Z
    | {_NAME} ["']? \s{{0,20}} (?: [:=] \s{{0,20}} )? \Z
    """,
    re.VERBOSE,
)


def _blanked(found: re.Match[str]) -> str:
    for group in _GROUPS:
        if found[group] is not None:
            start, end = found.span(group)
            return found[0][: start - found.start()] + REDACTED + found[0][end - found.start() :]
    return found[0]


def _begun(text: str, value: str, cut: int) -> int:
    """Where `value` begins, if it spans `cut` or the text ends in the middle of it; else `cut`."""
    for start in range(max(0, cut - len(value) + 1), cut):
        rest = text[start : start + len(value)]
        if value.startswith(rest) and (len(rest) < len(value) or start + len(value) > cut):
            return start
    return cut
