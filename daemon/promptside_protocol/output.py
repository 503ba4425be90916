"""What an agent wrote, as entries that a person reads; the same for terminal and editors.

Entries of one block are appended to one another by clients: nothing is shown twice, and what the agent took
back is taken back.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Role = Literal["text", "tool", "result", "stderr", "note", "status"]


class OutputEntry(Struct, frozen=True, kw_only=True):
    """A piece of output; `cursor` is the byte offset behind the line of the transcript that it came from.

    `text` is appended to the block's text; with `replace` the block's whole text is `text` (empty: taken
    back). Without a `block` it stands for itself.
    """

    cursor: int
    role: Role
    text: str
    block: str | None = None
    replace: bool = False
    path: str | None = None
    line: int | None = None
    ok: bool | None = None
