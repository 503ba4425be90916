"""Who may import what (ARCHITECTURE section 2): read off the source, so that nothing has to be run for it."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROTOCOL = ROOT / "daemon" / "promptside_protocol"
DAEMON = ROOT / "daemon" / "promptside_daemon"
ENGINE = DAEMON / "engine"
CLI = ROOT / "clients" / "cli" / "promptside_cli"
SERVER = ROOT / "server" / "promptside_server"

PURE = frozenset(
    {
        "__future__", "collections", "copy", "dataclasses", "datetime", "enum", "functools", "itertools",
        "math", "msgspec", "re", "string", "textwrap", "types", "typing", "unicodedata",
    }
)  # fmt: skip
"""What the engine may use: nothing that can wait, read, write, tell the time or throw dice."""

PROCESSES = frozenset({"subprocess", "signal", "pty", "multiprocessing"})
MAY_HAVE_PROCESSES = {
    "promptside_daemon/world": "the world is where processes are",
    "promptside_daemon/lifecycle.py": "the daemon as a process: it detaches, and ends at a signal",
    "promptside_daemon/instance.py": "the daemon before it is told to make way",
    "promptside_protocol/connect.py": "a client starts the daemon",
    "promptside_cli/demo.py": "its scratch repository is made by git",
    "promptside_cli/editor.py": "$EDITOR is a program",
    "promptside_cli/run.py": "Ctrl-C detaches",
    "promptside_cli/takeover.py": "a person goes on in the agent's own program",
    "promptside_cli/watch.py": "Ctrl-C ends it",
}
DATABASES = frozenset({"sqlite3", "aiosqlite"})


def sources(*places: Path) -> list[Path]:
    """All modules below the places; the sample project of a rehearsal is no part of the product."""
    files = [file for place in places if place.exists() for file in sorted(place.rglob("*.py"))]
    return [file for file in files if "rehearsals" not in file.parts]


def imports(file: Path) -> Iterator[str]:
    """The full name of everything that a module imports, wherever it does so."""
    package = module_of(file).rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                whole = ".".join([*base, module] if module else base)
                yield from (f"{whole}.{name.name}" for name in names)
            case _:
                pass


def module_of(file: Path) -> str:
    """The dotted name of a module; of a package's `__init__` that of a module in it."""
    parts = list(file.with_suffix("").parts)
    start = next(i for i, part in enumerate(parts) if part.startswith("promptside_"))
    return ".".join(parts[start:])


def within(name: str, *packages: str) -> bool:
    """Whether a name is one of the packages, or something in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def where(file: Path) -> str:
    return str(file.relative_to(ROOT))


def broken(files: list[Path], *, allowed: tuple[str, ...]) -> list[str]:
    """The imports of these files that are in none of the allowed packages."""
    return [f"{where(f)}: {name}" for f in files for name in imports(f) if not within(name, *allowed)]


def test_there_is_something_to_look_at() -> None:
    for place in (PROTOCOL, DAEMON, ENGINE, CLI):
        assert len(sources(place)) > 10, place


def test_the_engine_is_pure() -> None:
    """Rule 1: types, forms and errors of the protocol, and nothing that can wait, read or write."""
    allowed = (
        *PURE,
        "promptside_daemon.engine",
        "promptside_protocol.commands",
        "promptside_protocol.errors",
        "promptside_protocol.forms",
        "promptside_protocol.views",
    )
    assert broken(sources(ENGINE), allowed=(*allowed, *of_the_package("promptside_protocol", "forms"))) == []
    waiting = [
        f"{where(file)}:{node.lineno}"
        for file in sources(ENGINE)
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
    ]
    assert waiting == []


def of_the_package(package: str, *modules: str) -> tuple[str, ...]:
    """`from package import module`, as it is written when a whole module is meant."""
    return tuple(f"{package}.{module}" for module in modules)


def test_the_protocol_stands_alone() -> None:
    """Rule 2: the standard library, msgspec and platformdirs."""
    allowed = (*sys.stdlib_module_names, "msgspec", "platformdirs", "promptside_protocol")
    assert broken(sources(PROTOCOL), allowed=allowed) == []


def test_the_engine_uses_the_pure_part_of_the_protocol_only() -> None:
    """What it imports of the protocol imports neither the client nor the paths."""
    forbidden = ("client", "connect", "blocking", "paths", "frames", "flows")
    names = of_the_package("promptside_protocol", *forbidden)
    pure = [*sources(PROTOCOL / "forms"), *(PROTOCOL / f"{m}.py" for m in ("commands", "errors", "views"))]
    assert [f"{where(f)}: {n}" for f in pure for n in imports(f) if within(n, *names)] == []


@pytest.mark.parametrize("client", [CLI, SERVER], ids=["terminal", "server"])
def test_clients_never_import_the_daemon(client: Path) -> None:
    """Rule 2: they speak to it; `daemon run` is another process, and `lsp` becomes the server."""
    names = ("promptside_daemon", "promptside_cli" if client == SERVER else "promptside_server")
    files = [f for f in sources(client) if f != CLI / "lsp.py"]
    assert [f"{where(f)}: {n}" for f in files for n in imports(f) if within(n, *names)] == []


def test_the_daemon_imports_no_client() -> None:
    names = ("promptside_cli", "promptside_server")
    assert [f"{where(f)}: {n}" for f in sources(DAEMON) for n in imports(f) if within(n, *names)] == []


def test_only_the_server_knows_lsp() -> None:
    """Rule 3."""
    names = ("pygls", "lsprotocol")
    found = [
        f"{where(f)}: {n}" for f in sources(DAEMON, PROTOCOL, CLI) for n in imports(f) if within(n, *names)
    ]
    assert found == []


def test_only_the_store_knows_sql() -> None:
    """Rule 3; and only it opens a database."""
    files = [f for f in sources(DAEMON, PROTOCOL, CLI) if DAEMON / "store" not in f.parents]
    assert [f"{where(f)}: {n}" for f in files for n in imports(f) if within(n, *DATABASES)] == []


def test_only_the_world_knows_processes() -> None:
    """Rule 3, with the exceptions that have a reason; each of them is needed."""
    found = {
        module_of(f).replace(".", "/") + ".py"
        for f in sources(DAEMON, PROTOCOL, CLI)
        if any(within(name, *PROCESSES) for name in imports(f))
    }
    excepted = {
        place
        for place in found
        if any(place == one or place.startswith(f"{one}/") for one in MAY_HAVE_PROCESSES)
    }
    assert found == excepted
    assert {one for one in MAY_HAVE_PROCESSES if one.endswith(".py")} <= found


def test_only_the_world_knows_the_claude_cli() -> None:
    """What drives another agent is changed in one folder; the rest knows readings, events and entries."""
    shown = {
        "promptside_daemon/transcript.py": "renders a transcript for people",
        "promptside_daemon/doctor.py": "says which version is here",
    }
    name = "promptside_daemon.world.claude"
    files = [f for f in sources(DAEMON) if DAEMON / "world" not in f.parents]
    found = {
        module_of(f).replace(".", "/") + ".py" for f in files if any(within(n, name) for n in imports(f))
    }
    assert found == set(shown)


def test_the_keeper_needs_nothing_but_python() -> None:
    """Section 5: it is started by path with `-I -S`, once for each agent, and must be small."""
    heavy = {"json", "signal", "ctypes", "typing", "os", "subprocess"}
    tree = ast.parse((DAEMON / "world" / "keeper.py").read_bytes())
    names = [
        name
        for node in tree.body  # what only macOS needs is imported where it needs it
        for name in ([one.name for one in node.names] if isinstance(node, ast.Import) else [])
    ]
    assert not any(isinstance(node, ast.ImportFrom) for node in tree.body)
    assert names
    assert [name for name in names if name.split(".")[0] not in sys.stdlib_module_names] == []
    assert heavy.isdisjoint(names)


def test_the_player_needs_nothing_but_python() -> None:
    """It is run by path, as an agent is."""
    names = list(imports(DAEMON / "world" / "player.py"))
    assert [name for name in names if name.split(".")[0] not in sys.stdlib_module_names] == []
