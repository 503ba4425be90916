"""The person's editor on a copy of a document; what they wrote is never lost, whatever becomes of it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from promptside_cli.exits import FAILED, Stopped


class Copy(NamedTuple):
    """A file of the person's alone, for the time of one edit."""

    path: Path
    text: str

    def edited(self) -> str | None:
        """Open the editor and wait for its end; None when nothing was changed or the editor failed."""
        command = [*chosen(os.environ), str(self.path)]
        # Ctrl-C belongs to the editor while it has the terminal.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            # stdout may be a script's pipe; the terminal is where stderr goes then.
            out = None if sys.stdout.isatty() else sys.stderr
            ended = subprocess.run(command, check=False, stdout=out).returncode
        except OSError as error:
            raise Stopped(
                "no-editor", f"{command[0]} can't be started: {error.strerror}.", _HINT, FAILED
            ) from error
        finally:
            signal.signal(signal.SIGINT, before)
        if ended != 0:
            return None
        written = self.path.read_bytes().decode(errors="replace")
        return written if written != self.text else None

    def remove(self) -> None:
        """Done with it."""
        self.path.unlink(missing_ok=True)


def copy_of(text: str) -> Copy:
    """A copy that nobody else can read; `.md`, so that editors know what it is."""
    handle, name = tempfile.mkstemp(prefix="promptside-", suffix=".md")
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return Copy(Path(name), text)


def chosen(environment: Mapping[str, str]) -> list[str]:
    """$VISUAL, $EDITOR, else the first that is there of vi and nano."""
    for name in ("VISUAL", "EDITOR"):
        words = shlex.split(environment.get(name, ""))
        if words:
            return words
    for name in ("vi", "nano"):
        if shutil.which(name):
            return [name]
    raise Stopped("no-editor", "There is no editor.", _HINT, FAILED)


_HINT = "Set EDITOR to the one you use."
