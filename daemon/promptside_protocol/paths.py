"""Where socket, databases, transcripts, logs and settings live; PROMPTSIDE_HOME moves them all.

Nothing here creates a file: directories are made by whoever writes into them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from platformdirs import PlatformDirs

SOCKET_LIMIT = 100
"""Bytes; a unix socket's path must fit into 104 (macOS) or 108 (Linux) with its final NUL."""


def home() -> Path | None:
    """PROMPTSIDE_HOME, if it is set."""
    value = os.environ.get("PROMPTSIDE_HOME", "")
    return Path(value).expanduser().absolute() if value else None


def data_dir() -> Path:
    """Registry, project databases and attempts."""
    root = home()
    return root / "data" if root else _platform().user_data_path


def config_dir() -> Path:
    """The person's config.toml, pipelines and prompts."""
    root = home()
    return root / "config" if root else _platform().user_config_path


def log_dir() -> Path:
    """Logs of the daemon."""
    root = home()
    return root / "log" if root else _platform().user_log_path


def cache_dir() -> Path:
    """What can be made anew: older attempts as read-only files, growing output logs."""
    root = home()
    return root / "cache" if root else _platform().user_cache_path


def runtime_dir() -> Path:
    """The directory of the socket, mode 0700.

    Where its path would be too long for a socket, a directory below the system's temporary one that is
    named by the hash of the wanted one: `/tmp` itself, for clients that differ in TMPDIR must meet.
    """
    root = home()
    wanted = root / "run" if root else _platform_runtime()
    if len(os.fsencode(wanted / "daemon.sock")) <= SOCKET_LIMIT:
        return wanted
    import hashlib  # noqa: PLC0415  # 5 ms that a short path spares every call of the terminal

    digest = hashlib.sha256(os.fsencode(wanted)).hexdigest()[:16]
    return Path("/tmp") / f"promptside-{os.getuid()}-{digest}"  # noqa: S108  # 0700, and its owner is checked


def socket_path() -> Path:
    """The daemon's unix socket."""
    return runtime_dir() / "daemon.sock"


def registry_path() -> Path:
    """The registry database: which projects there are."""
    return data_dir() / "registry.db"


def project_dir(project: str) -> Path:
    """Database and attempts of one project, by the project's id."""
    return data_dir() / "projects" / project


def attempts_dir(project: str) -> Path:
    """The attempt directories of one project, by the project's id."""
    return project_dir(project) / "attempts"


def _platform() -> PlatformDirs:
    """The platform's own directories; asked only without PROMPTSIDE_HOME, since the import takes 5 ms."""
    from platformdirs import PlatformDirs  # noqa: PLC0415  # see above

    return PlatformDirs("promptside", appauthor=False)


def _platform_runtime() -> Path:
    """XDG_RUNTIME_DIR where the system gives one; else below the state directory, which is ours alone too."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given and os.access(given, os.W_OK):
        return Path(given) / "promptside"
    return _platform().user_state_path / "run"
