"""What the loop reads before an order is decided: the time, the person, and the world as far as it matters."""

from __future__ import annotations

from msgspec import Struct, field

from promptside_daemon.engine.gate import Sheet, Untold
from promptside_daemon.engine.pipeline import Limits
from promptside_daemon.engine.task import Person
from promptside_protocol.views import Change


class UnsavedFile(Struct, frozen=True, kw_only=True):
    """A file that an editor holds with changes which are not saved."""

    path: str
    """Relative to the project."""
    client: str


class Terminal(Struct, frozen=True, kw_only=True):
    """What is known of the terminal that takes a conversation over, or gives it back (ED-14)."""

    pid: int = 0
    """The process that holds it, when it takes over; when it gives back, another's that still does."""
    pid_started: str = ""
    changes: tuple[Change, ...] = ()
    transcript: str = ""


class Given(Struct, frozen=True, kw_only=True):
    """What was read for one order before it was decided."""

    at: float
    by: Person
    limits: Limits = field(default_factory=Limits)
    sheet: Sheet | None = None
    """The form document that the order is about."""
    untold: Untold = field(default_factory=Untold)
    """What a person wrote to the agent into the stage's document: it goes with a redo (UX 2.2)."""
    conflicts: tuple[str, ...] = ()
    """Paths that somebody else changed since the attempt that is to be undone."""
    unsaved: tuple[UnsavedFile, ...] = ()
    """What editors hold unsaved in the tree that the next stage may write to (ED-11)."""
    terminal: Terminal = field(default_factory=Terminal)
    clock: str = ""
    """Local time of what is told in refusals is formatted by the loop: `14:05`."""
