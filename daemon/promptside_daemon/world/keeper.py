"""Hold one agent: start it, hand it its messages, and end it with everything it ever started.

Run by path as `python -I -S keeper.py DIR`, once per attempt directory. It imports only what is built into
Python or compiled: `os`, `json`, `signal`, `ctypes` and `typing` would double the time it takes to start.
"""
# ruff: noqa: SIM105  contextlib is one of the imports this file does without

import _ctypes
import _signal  # type: ignore[import-not-found]  # typeshed has no stub for it
import fcntl
import posix
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20
EXIT_BYTES = 8192
# How soon to look again for processes that were born while their parents were being killed.
RESCAN_SECONDS = 0.01
RESCAN_SECONDS_MOST = 0.5
# How soon it is noticed that the directory was removed: no daemon finds the agent any more.
LOOK_SECONDS = 5.0


class Keeper:
    def __init__(self, spec: "Any", wake: int, control: int) -> None:
        self.spec = spec
        self.grace: float = spec["limits"]["grace_seconds"]
        self.wall: float | None = spec["limits"]["wall_seconds"]
        self.wake = wake
        self.control = control
        self.heard = b""
        self.agent = 0
        self.status: int | None = None
        self.reason, self.detail = "exited", ""
        self.started = time.time()
        # How far the ending of the agent has come (0 not begun, 1 asked, 2 SIGTERM, 3 SIGKILL), and when
        # it goes one further. The monotonic clock stands still while the machine sleeps (DA-12).
        self.step = 0
        self.due = None if self.wall is None else time.monotonic() + self.wall
        self.stdin = -1
        self.closing = False
        self.pending: list[tuple[int, memoryview]] = []
        self.forwarded = 0
        self.done = -1
        self.known: dict[int, str] = {}
        self.swept: set[int] = set()
        self.left = 0

    def start(self) -> bool:
        """Start the agent; false if that failed, with the sentence in `detail`."""
        self.done = posix.open("inbox/done", posix.O_WRONLY | posix.O_CREAT, 0o600)
        self.note_forwarded(0)
        argv = [argument.encode() for argument in self.spec["argv"]]
        environment = dict(pair.split(b"=", 1) for pair in read("environment").split(b"\0") if b"=" in pair)
        environment[b"PROMPTSIDE_ATTEMPT"] = self.spec["id"].encode()
        transcript = posix.open("transcript.ndjson", posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT, 0o600)
        # The agent's end is for reading only: a process that can write to its own stdin never sees its end.
        agent_stdin, self.stdin = posix.pipe()
        posix.set_blocking(self.stdin, False)
        try:
            fcntl.fcntl(self.stdin, F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # over the user's share of pipe memory, or a system without it: the pipe is only smaller
        trouble, tell_trouble = posix.pipe()
        me = posix.getpid()
        if LINUX:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.agent = posix.fork()
        if self.agent == 0:
            try:
                become_agent(me, argv, environment, self.spec["cwd"].encode(), (agent_stdin, transcript))
            except BaseException as error:  # noqa: BLE001  the child must never return into the keeper's code
                posix.write(tell_trouble, str(error).encode(errors="replace"))
            finally:
                posix._exit(127)  # noqa: SLF001  the only way out of a fork
        for descriptor in (agent_stdin, transcript, tell_trouble):
            posix.close(descriptor)
        # Ends when exec closes the other end.
        sentence = b"".join(iter(lambda: posix.read(trouble, 65536), b"")).decode(errors="replace")
        posix.close(trouble)
        if sentence:
            self.reason, self.detail = "unstartable", sentence
            posix.waitpid(self.agent, 0)
        return not sentence

    def hold(self) -> None:
        """Forward messages, obey commands and keep the time, until the agent itself has ended."""
        while self.reap() and self.status is None:
            now = time.monotonic()
            if self.due is not None and now >= self.due:
                self.go_further()
            elif removed():
                self.stop("failed", "its directory was removed")
            self.forward()
            writers = [self.stdin] if self.pending else []
            wait = LOOK_SECONDS if self.due is None else min(LOOK_SECONDS, max(0, self.due - now))
            for descriptor in select.select([self.control, self.wake], writers, [], wait)[0]:
                if descriptor == self.control:
                    self.obey()
                elif drain(self.wake).strip(bytes([_signal.SIGCHLD])):
                    self.stop("stopped", "the keeper was told by a signal to end")

    def obey(self) -> None:
        *lines, rest = (self.heard + drain(self.control)).split(b"\n")
        self.heard = rest[-EXIT_BYTES:]
        for line in lines:
            word, _, argument = line.partition(b" ")
            if word == b"stop":
                self.stop("stopped", argument.decode(errors="replace"))
            elif word == b"close":
                self.closing = True
            # `ring` needs no answer of its own: the inbox is looked at after every wake.
        if not LINUX:
            self.look()  # without a subreaper, what the agent leaves is known only if it was seen before

    def forward(self) -> None:
        """Write what the pipe takes: whole messages, in order, each once; then end the input if told to."""
        while self.stdin >= 0:
            if not self.pending:
                # Looked at first: whoever wrote END had written every message before it.
                closing = self.closing or exists("inbox/END")
                number = self.forwarded + 1
                message = b"" if self.step else read(f"inbox/{number:06d}.json")
                if message:
                    self.pending.append((number, line_of(message)))
                else:
                    if closing:
                        self.close_stdin()
                    return
            number, rest = self.pending[0]
            try:
                rest = rest[posix.write(self.stdin, rest) :]
            except BlockingIOError:
                return
            except BrokenPipeError:
                self.close_stdin()
                return
            self.pending[0] = number, rest
            if not rest:
                del self.pending[0]
                if number:
                    self.note_forwarded(number)

    def note_forwarded(self, number: int) -> None:
        self.forwarded = number
        try:
            posix.pwrite(self.done, b"%06d\n" % number, 0)
        except OSError:
            pass  # the number in memory is what counts; the next one will be written over the same place

    def close_stdin(self) -> None:
        self.pending.clear()
        if self.stdin >= 0:
            posix.close(self.stdin)
            self.stdin = -1

    def stop(self, reason: str, detail: str) -> None:
        """Begin to end the agent. A message half written is finished: nothing may be glued to it."""
        if self.step:
            return
        self.reason, self.detail = reason, detail
        self.step, self.due = 1, time.monotonic() + self.grace
        self.closing = True
        if self.spec["interrupt"]:
            self.pending.append((0, line_of(self.spec["interrupt"].encode())))

    def go_further(self) -> None:
        if self.step == 0:
            self.stop("limit", f"it ran longer than {self.wall:g} seconds")
            return
        if not LINUX:
            self.look()
        self.step += 1
        # It is not reaped yet, so its number can't belong to another process. A stopped one must wake to end.
        posix.kill(self.agent, _signal.SIGTERM if self.step == 2 else _signal.SIGKILL)
        posix.kill(self.agent, _signal.SIGCONT)
        self.due = time.monotonic() + self.grace if self.step == 2 else None

    def sweep(self) -> None:
        """End whatever the agent left: SIGTERM once, then SIGKILL until nothing is left."""
        self.close_stdin()
        if not self.remain():
            return
        self.signal_all(_signal.SIGTERM, _signal.SIGCONT)
        due = time.monotonic() + self.grace
        while self.remain() and (now := time.monotonic()) < due:
            self.rest(due - now)
        pause = RESCAN_SECONDS
        last: dict[int, str] | None = None
        while self.remain():
            living = self.signal_all(_signal.SIGKILL)
            if living != last:
                last, due = living, time.monotonic() + self.grace
            elif time.monotonic() >= due:
                # Another user's process (sudo), or one that hangs in the kernel: waiting changes nothing.
                self.left = len(living)
                return
            self.rest(pause)
            pause = min(2 * pause, RESCAN_SECONDS_MOST)

    def signal_all(self, *signals: int) -> dict[int, str]:
        living = self.look()
        self.swept.update(living)
        for pid, started in living.items():
            for number in signals:
                send_signal(pid, started, number)
        return living

    def look(self) -> dict[int, str]:
        """Every descendant alive, with its start; also one seen before that has lost its parents since."""
        table = processes()
        generation = {posix.getpid()}
        while generation:
            generation = {pid for pid, (parent, _) in table.items() if parent in generation}
            self.known.update((pid, table[pid][1]) for pid in generation)
        self.known = {pid: at for pid, at in self.known.items() if table.get(pid, (0, ""))[1] == at}
        return self.known

    def remain(self) -> bool:
        children = self.reap()
        return children if LINUX else bool(self.look())

    def reap(self) -> bool:
        """Take the status of every child that ended; false when there is no child at all."""
        try:
            while (ended := posix.waitpid(-1, posix.WNOHANG))[0]:
                if ended[0] == self.agent:
                    self.status = ended[1]
        except ChildProcessError:
            return False
        return True

    def rest(self, seconds: float) -> None:
        if select.select([self.wake], [], [], seconds)[0]:
            drain(self.wake)

    def outcome(self) -> "dict[str, Any]":
        import resource  # noqa: PLC0415  not needed before, when somebody waits for the start

        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = self.status
        killed = ran is not None and posix.WIFSIGNALED(ran)
        return {
            "reason": self.reason,
            "detail": self.detail[:500],
            "code": None if ran is None or killed else posix.WEXITSTATUS(ran),
            "signal": posix.WTERMSIG(ran) if ran is not None and killed else None,
            "started": self.started,
            "ended": time.time(),
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "max_rss_bytes": usage.ru_maxrss * (1024 if LINUX else 1),
            "forwarded": self.forwarded,
            "swept": len(self.swept),
            "left": self.left,
        }


def main(directory: str) -> int:
    wake = hear_signals()
    posix.chdir(directory)
    try:
        posix.setsid()
    except PermissionError:
        pass  # whoever started it has made it the leader of a session
    if not claim():
        return 0
    exit_file = reserve()
    posix.mkfifo("control", 0o600)
    control = posix.open("control", posix.O_RDWR | posix.O_NONBLOCK)
    # Whoever started it reads standard output and error to their end: from then on it can order and ask.
    posix.dup2(posix.open("stderr.log", posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT, 0o600), 2)
    posix.dup2(posix.open("/dev/null", posix.O_RDWR), 1)
    keeper = Keeper(json_codec()[0](read("spec.json").decode()), wake, control)
    try:
        if keeper.start():
            keeper.hold()
    except Exception as error:  # noqa: BLE001  whatever it was: the agent must not outlive its keeper
        keeper.reason, keeper.detail = "failed", f"the keeper failed: {error!r}"
    keeper.sweep()
    return record(exit_file, keeper.outcome())


def hear_signals() -> int:
    """Close what was inherited, and make every signal a byte in a pipe, so one `select` waits for all."""
    for name in posix.listdir("/dev/fd"):
        try:
            if int(name) > 2:
                posix.close(int(name))
        except OSError:
            pass  # the one this list was read through
    wake, woken = posix.pipe()
    for descriptor in (wake, woken):
        posix.set_blocking(descriptor, False)
    _signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (_signal.SIGCHLD, _signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        _signal.signal(number, lambda *_: None)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    return wake


def claim() -> bool:
    """Take the directory, once and for all time: of two keepers exactly one can make this link."""
    me = posix.getpid()
    mine = f"keeper.{me}"
    descriptor = posix.open(mine, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
    posix.write(descriptor, json_line({"pid": me, "started": processes(me)[me][1]}))
    posix.fsync(descriptor)
    posix.close(descriptor)
    try:
        posix.link(mine, "keeper.json")
    except FileExistsError:
        return False
    finally:
        posix.unlink(mine)
    sync_directory()
    return True


def reserve() -> int:
    """Make room for exit.json now, so that a full disk can't keep the end from being written."""
    descriptor = posix.open("exit.reserved", posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
    posix.write(descriptor, b" " * EXIT_BYTES)
    return descriptor


def record(descriptor: int, outcome: "dict[str, Any]") -> int:
    try:
        posix.ftruncate(descriptor, posix.pwrite(descriptor, json_line(outcome), 0))
        posix.fsync(descriptor)
        posix.rename("exit.reserved", "exit.json")
        sync_directory()
    except OSError:
        return 1  # the daemon finds a keeper gone without its exit.json, and judges by that
    return 0


def become_agent(
    keeper: int, argv: list[bytes], environment: dict[bytes, bytes], cwd: bytes, files: tuple[int, int]
) -> None:
    # Exec keeps what is ignored: by Python, by the keeper's handlers, or by whoever started the daemon (nohup, &).
    for name in dir(_signal):
        if (
            name.startswith("SIG")
            and name[3] != "_"
            and name not in ("SIGKILL", "SIGSTOP", "SIGRTMIN", "SIGRTMAX")
        ):
            _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
    posix.setsid()
    if LINUX:
        prctl(PR_SET_PDEATHSIG, _signal.SIGTERM)
        if posix.getppid() != keeper:
            posix._exit(127)  # noqa: SLF001  it died before the line above
    for number, descriptor in enumerate(files):
        posix.dup2(descriptor, number)
    try:
        posix.chdir(cwd)
    except OSError as error:
        raise RuntimeError(
            f"the working directory {cwd.decode()} can't be entered: {error.strerror}"
        ) from None
    program, trouble = argv[0], "it is not on the PATH"
    candidates = [program]
    if b"/" not in program:
        path = environment.get(b"PATH", b"/usr/bin:/bin")
        candidates = [place + b"/" + program for place in path.split(b":") if place]
    for candidate in candidates:
        try:
            posix.execve(candidate, argv, environment)
        except (FileNotFoundError, NotADirectoryError) as error:
            if candidate == program:
                trouble = str(error.strerror)
        except OSError as error:
            trouble = str(error.strerror)
        except ValueError as error:
            trouble = str(error)
    raise RuntimeError(f"{program.decode()} can't be started: {trouble}")


def prctl(option: int, value: int) -> None:
    address = _ctypes.dlsym(_ctypes.dlopen(None, 2), "prctl")  # type: ignore[arg-type]  # None is the program itself
    if _ctypes.call_cdeclfunction(address, (option, value, 0, 0, 0)) != 0:
        raise RuntimeError(f"prctl({option}) failed")


def processes(only: int | None = None) -> dict[int, tuple[int, str]]:
    """Every process that is not dead: its parent, and when it started, as `processes.py` spells it."""
    if not LINUX:
        return processes_by_ps()
    boot = read("/proc/sys/kernel/random/boot_id").decode().strip()
    table = {}
    for name in [str(only)] if only else posix.listdir("/proc"):
        stat = read(f"/proc/{name}/stat") if name.isdigit() else b""
        fields = stat[stat.rfind(b")") + 2 :].split()
        if fields and fields[0] not in (b"Z", b"X"):
            table[int(name)] = int(fields[1]), f"{boot}/{int(fields[19])}"
    return table


def processes_by_ps() -> dict[int, tuple[int, str]]:
    output, writer = posix.pipe()
    command = ["ps", "-axo", "pid=,ppid=,stat=,lstart="]
    actions = [(posix.POSIX_SPAWN_DUP2, writer, 1)]
    ps = posix.posix_spawn("/bin/ps", command, {"LC_ALL": "C", "TZ": "UTC"}, file_actions=actions)
    posix.close(writer)
    text = b"".join(iter(lambda: posix.read(output, 65536), b"")).decode()
    posix.close(output)
    posix.waitpid(ps, 0)
    table = {}
    for line in text.splitlines():
        pid, parent, state, *started = line.split()
        if state[0] != "Z" and int(pid) != ps:
            table[int(pid)] = int(parent), " ".join(started)
    return table


def send_signal(pid: int, started: str, number: int) -> None:
    """Send a signal to exactly this process: its number may have passed to another since it was seen."""
    try:
        if sys.platform == "linux":
            handle = posix.pidfd_open(pid)
            try:
                if processes(pid).get(pid, (0, ""))[1] == started:
                    _signal.pidfd_send_signal(handle, number)
            finally:
                posix.close(handle)
        else:
            posix.kill(pid, number)
    except OSError:
        pass  # gone meanwhile, or another user's


def removed() -> bool:
    """Whether what a daemon finds us by is gone, with the whole directory or alone."""
    try:
        posix.stat("keeper.json")
    except FileNotFoundError:
        return True
    except OSError:
        pass  # a disk that doesn't answer well now may do so later
    return False


def exists(path: str) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def read(path: str) -> bytes:
    """All of a file; nothing if it is not there."""
    try:
        descriptor = posix.open(path, posix.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return b"".join(iter(lambda: posix.read(descriptor, 1 << 20), b""))
    except ProcessLookupError:
        return b""  # a file of /proc whose process ended under our hands
    finally:
        posix.close(descriptor)


def drain(descriptor: int) -> bytes:
    try:
        return posix.read(descriptor, 65536)
    except BlockingIOError:
        return b""


def line_of(message: bytes) -> memoryview:
    return memoryview(message.rstrip(b"\n") + b"\n")


def sync_directory() -> None:
    descriptor = posix.open(".", posix.O_RDONLY)
    posix.fsync(descriptor)
    posix.close(descriptor)


def json_codec() -> "tuple[Callable[[str], Any], Callable[[str], str]]":
    """What reads a JSON text, and what writes a string as JSON, without the price of importing `json`."""
    try:
        from _json import encode_basestring_ascii, make_scanner  # noqa: PLC0415  CPython's own, not promised
    except ImportError:
        import json  # noqa: PLC0415  see above

        return json.loads, json.dumps

    class Syntax:
        strict = True
        object_hook = object_pairs_hook = None
        parse_float, parse_int, parse_constant = float, int, None

    scan = make_scanner(Syntax)  # type: ignore[arg-type]  # the stub asks for a scanner
    return lambda text: scan(text, 0)[0], encode_basestring_ascii


def json_line(fields: "dict[str, Any]") -> bytes:
    """An object of strings, numbers and nulls."""
    quote = json_codec()[1]
    parts = [
        f'"{key}":{"null" if value is None else quote(value) if isinstance(value, str) else repr(value)}'
        for key, value in fields.items()
    ]
    return ("{" + ",".join(parts) + "}\n").encode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
