"""Reach the daemon: find its socket, start it where none listens, replace an older one, say hello.

Everything here blocks, and nothing waits by sleeping: a start is over when the launcher has ended.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from promptside_protocol import PROTOCOL, __version__, errors, frames, paths
from promptside_protocol.commands import Ack, NewTask, Shutdown
from promptside_protocol.queries import ANSWERS, Hello, Query, Welcome

DAEMON = (sys.executable, "-P", "-m", "promptside_daemon", "run")
"""Starts a daemon and ends when it listens. `-P`: a project's own files must never be imported."""
MARK = "PROMPTSIDE_ATTEMPT"
"""Stands in the environment of whatever an agent starts."""

ANSWER_SECONDS = 10.0
"""How long a daemon that listens may take to say hello."""
START_SECONDS = 60.0
"""How long a start may take; a big database that is copied and migrated needs some of it."""
TRIES = 4
"""A daemon may be ending, or be replaced by somebody else, while we reach for it; not for ever."""
CHUNK = 256 * 1024

NAMES = frozenset(
    ("PATH", "HOME", "LANG", "TERM", "VIRTUAL_ENV", "SSH_AUTH_SOCK", "PROMPTSIDE_CLAUDE")
)  # fmt: skip
PREFIXES = ("LC_", "CONDA_", "NVM_", "ANTHROPIC_", "CLAUDE_", "GH_", "AWS_", "GOOGLE_")


class Standing(Struct, frozen=True, kw_only=True):
    """What a daemon leaves beside its socket while it runs."""

    pid: int
    started: str
    """The start of the process as the system tells it: with the number it names exactly one."""
    version: str
    protocol: int


class Wire:
    """A connection, used by one thread, that blocks."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.framer = frames.Framer()
        self.unread: list[frames.Frame] = []

    def send(self, frame: frames.Sendable) -> None:
        self.sock.sendall(frames.encode(frame))

    def receive(self) -> frames.Frame:
        """The next frame; `ConnectionError` when there will be none."""
        while not self.unread:
            data = self.sock.recv(CHUNK)
            if not data:
                raise ConnectionResetError("the daemon closed the connection")
            self.unread += self.framer.feed(data)
        return self.unread.pop(0)

    def ask(self, request: Struct) -> Any:
        """Send one request and wait for its answer; whatever else comes meanwhile is passed over."""
        self.send(frames.request(0, request))
        while True:
            match self.receive():
                case frames.Response(id=0) as response:
                    return answer_in(response, request)
                case frames.Failure() as failure:
                    raise frames.error_of(failure)
                case _:
                    pass  # a notice of the daemon's state; who wants notices has a client of its own

    def close(self) -> None:
        self.sock.close()


def hello(client: str, more: tuple[str, ...] = ()) -> Hello:
    """Who we are, for `client` as it shall stand in approvals; `more` names of the settings (DA-10)."""
    try:
        cwd = os.getcwd()  # noqa: PTH109  # it goes on the wire as text
    except FileNotFoundError:
        cwd = ""  # the directory was removed under the shell
    return Hello(
        client=client,
        version=__version__,
        protocol=PROTOCOL,
        environment=environment(dict(os.environ), more),
        cwd=cwd if _is_text(cwd) else "",
    )


def environment(whole: dict[str, str], more: tuple[str, ...] = ()) -> dict[str, str]:
    """What of an environment an agent of this person may need, by the allow-list of DA-10."""
    return {
        name: value
        for name, value in whole.items()
        if (
            name in NAMES or name in more or name.startswith(PREFIXES) or name.upper().endswith("_PROXY")
        )
        and _is_text(name + value)
    }  # fmt: skip


def greet(greeting: Hello, *, start: bool) -> tuple[Wire, Welcome]:
    """A connection over which hello was said; with `start`, a daemon is started or an older one replaced."""
    marked = MARK in os.environ
    for _ in range(TRIES):
        wire = dial()
        if wire is None and start and not marked:
            launch()
            wire = dial()
        if wire is None:
            raise _not_running(marked=start and marked)
        try:
            welcome = wire.ask(greeting)
            if not (start and welcome.session == "person" and replaces(greeting, welcome)):
                wire.sock.settimeout(None)
                return wire, welcome
            _ask_to_go(wire)
        except ConnectionError:
            pass  # it was about to end
        except TimeoutError:
            wire.close()
            raise _silent() from None
        except BaseException:
            wire.close()
            raise
        wire.close()
    raise unreachable("The daemon went away again and again while it was reached for.")


def dial() -> Wire | None:
    """A connection, or None where nothing listens."""
    path = paths.socket_path()
    check_private(path.parent)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(ANSWER_SECONDS)
    try:
        sock.connect(os.fspath(path))
    except (FileNotFoundError, ConnectionRefusedError):
        sock.close()
        return None
    except (BlockingIOError, TimeoutError):
        sock.close()
        raise _silent() from None
    except OSError as error:
        sock.close()
        raise unreachable(f"The daemon's socket {path} can't be opened: {error.strerror}.") from error
    return Wire(sock)


def launch() -> None:
    """Start a daemon and wait until it, or one that was faster, is ready."""
    import subprocess  # noqa: PLC0415  # 10 ms that a call to a running daemon can spare

    inherited = {name: value for name, value in os.environ.items() if name != MARK}
    root = paths.home()
    if root is not None:
        inherited["PROMPTSIDE_HOME"] = os.fspath(root)  # absolute: the daemon's own directory is another
    try:
        done = subprocess.run(
            DAEMON,
            cwd="/",
            env=inherited,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            timeout=START_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise unreachable(f"The daemon was not ready after {START_SECONDS:.0f} seconds.", _log()) from None
    except OSError as error:
        raise unreachable(f"The daemon can't be started: {error}.", "promptside doctor") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise unreachable(f"The daemon did not start. {_last_line(said)}".rstrip(), _log())


def standing() -> Standing | None:
    """The daemon that runs or was killed, by its own word; None after an orderly end."""
    try:
        return msgspec.json.decode(status_path().read_bytes(), type=Standing)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def status_path() -> Path:
    """Where a daemon leaves its `Standing`."""
    return paths.runtime_dir() / "daemon.json"


def check_private(directory: Path) -> None:
    """Refuse a directory for the socket that somebody else could have made, or could write to (DA-4)."""
    try:
        owners = {directory.lstat().st_uid, directory.stat().st_uid}
    except FileNotFoundError:
        return
    if owners != {os.getuid()}:
        raise unreachable(
            f"{directory} belongs to another user, so the daemon's socket can't be trusted there.",
            "Remove it, or set PROMPTSIDE_HOME to a directory of your own.",
        )


def replaces(greeting: Hello, welcome: Welcome) -> bool:
    """Whether we are newer than the daemon that answered; an older one never replaces a newer one."""
    return newer(greeting.protocol, greeting.version, than=(welcome.protocol, welcome.version))


def newer(protocol: int, version: str, *, than: tuple[int, str]) -> bool:
    """The order of daemons: by protocol, then by version."""
    return (protocol, _rank(version)) > (than[0], _rank(than[1]))


def answer_in(response: frames.Response, request: Struct) -> Any:
    """The typed answer to a request: an `Ack` for an order, what `ANSWERS` says for a query."""
    kind = ANSWERS[type(request)] if isinstance(request, Query) else Ack
    try:
        return msgspec.json.decode(response.result, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        sentence = f"The daemon's answer to “{frames.method_of(request)}” can't be read: {error}."
        raise errors.Internal(errors.Refusal(code="unreadable", message=sentence)) from error


def repeatable(request: Struct) -> bool:
    """Whether a request whose answer was lost may be sent again: a question, or an order with a key."""
    return isinstance(request, Query | NewTask)


def answer_lost(request: Struct) -> errors.Unreachable:
    """The error of an order that went out and was not answered."""
    return errors.Unreachable(
        errors.Refusal(
            code="answer-lost",
            message=f"The daemon went away before it answered “{frames.method_of(request)}”.",
            hint="It may have taken effect: look before you repeat it.",
        )
    )


def unreachable(sentence: str, hint: str = "") -> errors.Unreachable:
    return errors.Unreachable(errors.Refusal(code="unreachable", message=sentence, hint=hint))


def _ask_to_go(wire: Wire) -> None:
    """Ask an older daemon to end, and wait until it has: it answers last of all."""
    wire.sock.settimeout(START_SECONDS)  # what it is committing may take a while
    with contextlib.suppress(ConnectionError):
        wire.ask(Shutdown(reason="upgrade"))


def _not_running(*, marked: bool) -> errors.NotAllowed | errors.Unreachable:
    if marked:
        sentence = "The Promptside daemon is not running, and an agent can't start it."
        return errors.NotAllowed(errors.Refusal(code="agent", message=sentence))
    left = standing()
    if left is not None and _runs(left.pid):
        return unreachable(
            f"A daemon seems to run as process {left.pid}, but nothing listens at {paths.socket_path()}.",
            "End that process; agents at work go on, and the next daemon finds them.",
        )
    return unreachable("The Promptside daemon is not running.", "promptside daemon run")


def _silent() -> errors.Unreachable:
    left = standing()
    number = f" (process {left.pid})" if left else ""
    return unreachable(f"The daemon{number} listens but does not answer.", _log())


def _runs(pid: int) -> bool:
    """Whether a process of this person has this number; a dead one that nobody has reaped is none."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return sys.platform != "linux"  # elsewhere nothing more can be told
    return stat[stat.rindex(b")") + 2 :][:1] not in {b"Z", b"X"}


def _log(lines: int = 10) -> str:
    """The last lines of the daemon's log, as a hint."""
    path = paths.log_dir() / "daemon.log"
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            end = file.read().decode(errors="replace").splitlines()[-lines:]
    except OSError:
        return ""
    return "\n".join((f"The end of {path}:", *end))


def _last_line(text: str) -> str:
    return text.rsplit("\n", 1)[-1]


def _rank(version: str) -> tuple[tuple[int, ...], bool]:
    """A version as something to compare: 0.2.0rc1 is before 0.2.0."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    numbers = tuple(int(part) for part in release.group().split(".")) if release else ()
    final = release is not None and not re.match(r"(a|b|rc|\.dev)", version[release.end() :])
    return numbers, final


def _is_text(value: str) -> bool:
    return value.encode(errors="ignore").decode() == value
