"""Who we say we are, whom we trust, and which of two daemons is newer."""

import os
from pathlib import Path

import pytest

from promptside_protocol import PROTOCOL, __version__, connect, errors, paths
from promptside_protocol.queries import Welcome


def test_the_environment_is_an_allow_list() -> None:
    """DA-10"""
    allowed = {
        "PATH": "/bin",
        "HOME": "/h",
        "LANG": "C",
        "LC_ALL": "C",
        "TERM": "xterm",
        "VIRTUAL_ENV": "/v",
        "CONDA_PREFIX": "/c",
        "NVM_DIR": "/n",
        "SSH_AUTH_SOCK": "/s",
        "https_proxy": "http://a",
        "NO_PROXY": "b",
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CONFIG_DIR": "/x",
        "GH_TOKEN": "t",
        "AWS_REGION": "r",
        "GOOGLE_CLOUD_PROJECT": "p",
        "PROMPTSIDE_CLAUDE": "/claude",
    }
    others = {
        "DATABASE_URL": "secret",
        "PROMPTSIDE_ATTEMPT": "a",
        "PATHS": "x",
        "LCX": "x",
        "LD_PRELOAD": "x",
    }
    assert connect.environment(allowed | others) == allowed
    assert connect.environment(others, more=("DATABASE_URL",)) == {"DATABASE_URL": "secret"}
    assert connect.environment({"PATH": "/bin/\udcff", "LANG": "C"}) == {"LANG": "C"}


def test_hello_says_who_and_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    hello = connect.hello("neovim")
    assert (hello.client, hello.version, hello.protocol) == ("neovim", __version__, PROTOCOL)
    assert hello.cwd == str(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert connect.hello("neovim").cwd == ""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ((1, "0.1.0"), (1, "0.2.0")),
        ((1, "0.9.0"), (1, "0.10.0")),
        ((1, "9.0.0"), (2, "0.1.0")),
        ((1, "1.0.0rc1"), (1, "1.0.0")),
        ((1, "1.0.0.dev3"), (1, "1.0.0")),
        ((1, "not a version"), (1, "0.1.0")),
    ],
)
def test_the_newer_of_two_daemons(older: tuple[int, str], newer: tuple[int, str]) -> None:
    """DA-7"""
    assert connect.newer(*newer, than=older)
    assert not connect.newer(*older, than=newer)
    assert not connect.newer(*newer, than=newer)


def test_a_daemon_of_our_own_version_stays() -> None:
    def replaced(protocol: int, version: str) -> bool:
        welcome = Welcome(version=version, protocol=protocol, pid=1, session="person")
        return connect.replaces(connect.hello("test"), welcome)

    assert not replaced(PROTOCOL, __version__)
    assert replaced(PROTOCOL - 1, __version__)
    assert not replaced(PROTOCOL, "99.0")


def test_a_directory_of_somebody_else_is_not_trusted_with_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-4"""
    connect.check_private(home / "not there")
    connect.check_private(home)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(errors.Unreachable, match="another user"):
        connect.check_private(home)


def test_a_socket_that_nobody_listens_at_and_a_file_in_its_place_are_no_daemon(home: Path) -> None:
    assert connect.dial() is None
    paths.runtime_dir().mkdir()
    paths.socket_path().touch()
    assert connect.dial() is None


def test_a_daemon_without_a_socket_is_named(home: Path) -> None:
    paths.runtime_dir().mkdir()
    connect.status_path().write_text(
        f'{{"pid": {os.getpid()}, "started": "", "version": "1", "protocol": 1}}'
    )
    with pytest.raises(errors.Unreachable, match=f"process {os.getpid()}"):
        connect.greet(connect.hello("test"), start=False)
    connect.status_path().unlink()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}'])
def test_a_broken_status_file_says_nothing(home: Path, content: str) -> None:
    paths.runtime_dir().mkdir()
    connect.status_path().write_text(content)
    assert connect.standing() is None
