"""Exit codes, a contract with scripts (CLI.md), and which failure gets which."""

from __future__ import annotations

DONE = 0
FAILED = 1
USAGE = 2
WAITS = 3
REFUSED = 4
UNREACHABLE = 5
DETACHED = 130


class UsageError(Exception):
    """The words don't make sense; `usage` is the line that does, `hint` what may have been meant."""

    def __init__(self, message: str, usage: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.usage = usage
        self.hint = hint


class Stopped(Exception):  # the end of a verb, not a fault of the program
    """A verb ends here, for a reason a person understands."""

    def __init__(self, code: str, message: str, hint: str = "", exit_code: int = REFUSED) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


def exit_for(error: Exception) -> int:
    """The exit code of what the protocol raised."""
    from promptside_protocol import errors  # noqa: PLC0415  # only where something failed

    match error:
        case errors.Unreachable() | errors.ProtocolMismatch() | errors.UnknownMethod():
            # A daemon of another version can't be talked to, whatever it still answers.
            return UNREACHABLE
        case errors.InvalidParams():
            return USAGE
        case errors.Refused() | errors.NotAllowed():
            return REFUSED
        case _:
            return FAILED
