"""The daemon as a process: started once, detached, ready when it says so, ended in order.

The order of an end: nobody is let in, what was taken is finished, the databases are closed, the status file
and the lock go, and only then is the last word said. Who has heard it can start the next daemon at once.
"""

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path

from promptside_daemon.instance import Instance
from promptside_daemon.rpc.core import Core
from promptside_daemon.rpc.server import Server
from promptside_protocol import __version__, errors, paths
from promptside_protocol.notices import DaemonSays

log = logging.getLogger(__name__)

IDLE_SECONDS = 600.0
"""How long a daemon that has nothing to do stays."""
SOON_SECONDS = 24 * 3600.0
"""What is due within this time keeps it (DA-12)."""
LOG_BYTES = 5_000_000
OLD_LOGS = 3

Tell = Callable[[str], None]
"""Told once how the start went: an empty sentence means ready."""


class Service:
    """What the core may know of the process that carries it, and ask of it."""

    def __init__(self, umask: int) -> None:
        self.umask = umask
        """The person's, for what is not ours alone: documents in projects, and agents."""
        self.started = time.time()
        self.log_path = log_path()
        self.server: Server | None = None
        self._loop = asyncio.get_running_loop()
        self._stop: asyncio.Future[str] = self._loop.create_future()
        self._ended = self._loop.create_future()

    def clients(self) -> int:
        """How many clients are connected."""
        return self.server.clients if self.server else 0

    def stop(self, reason: str) -> None:
        """End the daemon in order; agents at work go on."""
        if not self._stop.done():
            self._stop.set_result(reason)

    async def stopped(self) -> str:
        """Wait for the order to stop; its reason."""
        return await asyncio.shield(self._stop)

    async def parting(self, reason: str) -> None:
        """Stop, and wait until everything but the last words is over."""
        self.stop(reason)
        await asyncio.shield(self._ended)

    def end(self) -> None:
        """Let the last words be said."""
        self._ended.set_result(None)


MakeCore = Callable[[Service], Awaitable[Core]]


def run(make_core: MakeCore, *, foreground: bool = False, idle_seconds: float = IDLE_SECONDS) -> int:
    """Be the daemon; the exit status. Detached, the caller's process returns as soon as the daemon is ready.

    Where a daemon is there already, or another one was faster, that is no fault: 0.
    """
    umask = os.umask(0o077)
    if foreground:
        return _live(make_core, umask, idle_seconds, detached=False, tell=_tell_terminal)
    readable, writable = os.pipe()
    if os.fork() > 0:
        os.close(writable)
        return _wait(readable)
    os.close(readable)
    os.setsid()
    _stdio_to(os.open(os.devnull, os.O_RDWR))
    return _live(make_core, umask, idle_seconds, detached=True, tell=_teller(writable))


def log_path() -> Path:
    return paths.log_dir() / "daemon.log"


def _live(make_core: MakeCore, umask: int, idle_seconds: float, *, detached: bool, tell: Tell) -> int:
    """From the lock to the last word."""
    try:
        instance = Instance.enter()
        if instance is None:
            tell("")
            return 0
        os.chdir("/")  # a directory of a project must not be held
        _log_to(log_path(), detached=detached)
        log.info("version %s starts as process %d", __version__, os.getpid())
        asyncio.run(_serve(make_core, instance, umask, idle_seconds, tell))
    except errors.PromptsideError as error:
        log.error("%s %s", error, error.refusal.hint)  # noqa: TRY400  # a sentence for people, no fault of ours
        tell(f"{error} {error.refusal.hint}".rstrip())
        return 1
    except Exception as error:
        log.exception("the daemon ended by a fault of ours")
        tell(f"{type(error).__name__}: {error}")
        return 1
    return 0


async def _serve(
    make_core: MakeCore, instance: Instance, umask: int, idle_seconds: float, tell: Tell
) -> None:
    service = Service(umask)
    _on_signals(service)
    core = await make_core(service)
    try:
        idle = _Idle(core, service, idle_seconds)
        server = Server(core, parting=service.parting, changed=idle.changed, log_path=str(service.log_path))
        service.server = server
        await server.listen(paths.socket_path())
        instance.settled()
        idle.changed()
        tell("")
        log.info("listening at %s", paths.socket_path())
        reason = await service.stopped()
        log.info("ending: %s", reason or "asked to")
        instance.leaving()
        await server.wind_up(*_farewell(reason))
    finally:
        await core.close()
    instance.gone()
    service.end()
    await server.close()
    log.info("ended")


class _Idle:
    """Stops a daemon that nobody is connected to and that has nothing to do now or soon."""

    def __init__(self, core: Core, service: Service, seconds: float) -> None:
        self._core = core
        self._service = service
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        """A client came or went: count from now."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def _look(self) -> None:
        due = self._core.due()
        soon = due is not None and due - time.time() < SOON_SECONDS
        if self._service.clients() or self._core.busy() or soon:
            self.changed()
        else:
            self._service.stop("nothing to do")


def _farewell(reason: str) -> tuple[str, DaemonSays]:
    """What is said to those who still ask, and to those who listen."""
    if reason == "upgrade":
        sentence = "The daemon makes way for a newer version. Agents at work go on; nothing is lost."
        return sentence, DaemonSays(state="replaced", message=sentence)
    sentence = "The Promptside daemon stops. Agents at work go on; nothing is lost."
    return sentence, DaemonSays(state="stopping", message=sentence)


def _on_signals(service: Service) -> None:
    """The first signal ends in order, the second at once."""
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        service.stop(number.name)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)


# --- detached -----------------------------------------------------------------------------------------


def _teller(writable: int) -> Tell:
    def tell(sentence: str) -> None:
        nonlocal writable
        if writable >= 0:
            os.write(writable, (sentence or "\0").encode())
            os.close(writable)
            writable = -1

    return tell


def _tell_terminal(sentence: str) -> None:
    if sentence:
        print(sentence, file=sys.stderr)


def _wait(readable: int) -> int:
    """Wait for the daemon's word, or its death."""
    with os.fdopen(readable, "rb") as pipe:
        said = pipe.read()
    if said == b"\0":
        return 0
    sentence = said.decode(errors="replace") or "The daemon ended while it was starting."
    print(sentence, file=sys.stderr)
    return 1


def _stdio_to(descriptor: int) -> None:
    for standard in (0, 1, 2):
        os.dup2(descriptor, standard)
    if descriptor > 2:
        os.close(descriptor)


# --- the log ------------------------------------------------------------------------------------------


class _Log(RotatingFileHandler):
    """The log; what anything prints, a crash of the interpreter included, goes to the same file."""

    def doRollover(self) -> None:  # noqa: N802  # the name is the library's
        super().doRollover()
        self.take_stdio()

    def take_stdio(self) -> None:
        assert self.stream is not None, "it is opened at once, and again by each rotation"
        for standard in (1, 2):
            os.dup2(self.stream.fileno(), standard)


def _log_to(path: Path, *, detached: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    kind = _Log if detached else RotatingFileHandler
    file = kind(path, maxBytes=LOG_BYTES, backupCount=OLD_LOGS, encoding="utf-8")
    handlers: list[logging.Handler] = [file]
    if isinstance(file, _Log):
        file.take_stdio()
    else:
        handlers.append(logging.StreamHandler())
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(handler)
    faulthandler.enable()
