"""What a project brings that would run is counted, and trusted only as it was seen (DA-5, M23, M24)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from promptside_daemon import trust
from promptside_daemon.trust import Inventory, Trusted, inventory, state, summary, trusted_now

EVERYTHING = {
    ".promptside/config.toml": "[checks]\ntest = 'make  test'\nbuild = 'make'\n",
    ".promptside/pipelines/mine.toml": "[[stage]]\n",
    ".promptside/pipelines/prompts/a.md.j2": "A",
    ".promptside/prompts/research.md.j2": "more",
    ".claude/settings.json": json.dumps(
        {
            "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./hook.sh"}]}]},
            "apiKeyHelper": "./key",
        }
    ),
    ".claude/settings.local.json": "{}",
    ".claude/skills/x/SKILL.md": "x",
    ".claude/skills/x/run.py": "x",
    ".claude/commands/c.md": "x",
    ".claude/agents/a.md": "x",
    ".claude/hooks/h.sh": "x",
    ".mcp.json": json.dumps({"mcpServers": {"a": {"command": "npx", "args": ["-y", "srv"]}}}),
}
NOTHING = {
    "CLAUDE.md": "x",
    "src/main.py": "x",
    ".promptside/tasks/1-a/task.md": "x",
    ".promptside/worktrees/1/.mcp.json": "{}",
    ".claude/todo.md": "x",
}


def put(project: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content)
    return project


def test_what_runs_counts_and_nothing_else(tmp_path: Path) -> None:
    found = inventory(put(tmp_path, EVERYTHING | NOTHING))
    assert {item.path for item in found.items} == set(EVERYTHING)
    assert found.whole
    runs = {item.path: item.runs for item in found.items if item.runs}
    assert runs == {
        ".promptside/config.toml": ("make test", "make"),
        ".claude/settings.json": ("./key", "./hook.sh"),
        ".mcp.json": ("npx -y srv",),
    }


def test_a_project_that_brings_nothing_needs_no_trust(tmp_path: Path) -> None:
    view = state(inventory(put(tmp_path, NOTHING)), Trusted(hash="of before"))
    assert (view.state, view.hash, view.items) == ("none_needed", "", ())
    assert state(inventory(tmp_path / "nowhere"), None).state == "none_needed"


@pytest.mark.parametrize("path", EVERYTHING)
def test_each_byte_and_each_name_is_part_of_the_hash(tmp_path: Path, path: str) -> None:
    before = trusted_now(inventory(put(tmp_path, EVERYTHING)), "1 May")
    assert state(inventory(tmp_path), before).state == "trusted"
    (tmp_path / path).write_text(EVERYTHING[path] + " ")
    changed = state(inventory(tmp_path), before)
    assert changed.state == "changed"
    assert [item.path for item in changed.items if item.changed] == [path]
    (tmp_path / path).write_text(EVERYTHING[path])
    assert state(inventory(tmp_path), before).state == "trusted"
    (tmp_path / path).unlink()
    removed = state(inventory(tmp_path), before)
    assert removed.state == "changed"
    assert [(item.path, item.what.endswith("removed")) for item in removed.items if item.changed] == [
        (path, True)
    ]


def test_files_swapped_or_moved_are_another_version(tmp_path: Path) -> None:
    put(tmp_path, {".promptside/pipelines/a.toml": "1", ".promptside/pipelines/b.toml": "2"})
    one = inventory(tmp_path).hash
    put(tmp_path, {".promptside/pipelines/a.toml": "2", ".promptside/pipelines/b.toml": "1"})
    two = inventory(tmp_path).hash
    (tmp_path / ".promptside/pipelines/b.toml").rename(tmp_path / ".promptside/pipelines/c.toml")
    assert len({one, two, inventory(tmp_path).hash}) == 3


def test_m23_says_what_it_brings(tmp_path: Path) -> None:
    put(tmp_path, {name: EVERYTHING[name] for name in list(EVERYTHING)[:2]})
    view = state(inventory(tmp_path), None)
    assert view.state == "untrusted"
    assert view.sentence == (
        "This project brings its own pipeline, 2 check commands. They run programs on your machine. "
        "Read them, then trust this version or use the built-in pipeline."
    )
    shown = {item.path: item.what for item in view.items}
    assert shown[".promptside/config.toml"] == "settings: make test; make"
    assert summary(inventory(put(tmp_path, EVERYTHING))).count(",") >= 8


def test_m24_says_what_changed_and_since_when(tmp_path: Path) -> None:
    before = trusted_now(inventory(put(tmp_path, EVERYTHING)), "1 May")
    put(tmp_path, {".promptside/pipelines/mine.toml": "other", ".promptside/pipelines/new.toml": "x"})
    view = state(inventory(tmp_path), before)
    assert view.sentence == (
        "The project's pipeline changed since you trusted it on 1 May. "
        "It does not run until you trust the new version."
    )
    shown = {item.path: item.what for item in view.items if item.changed}
    assert shown == {
        ".promptside/pipelines/mine.toml": "pipeline",
        ".promptside/pipelines/new.toml": "new pipeline",
    }
    assert view.hash == inventory(tmp_path).hash


def test_a_hash_alone_is_enough_to_decide(tmp_path: Path) -> None:
    now = inventory(put(tmp_path, EVERYTHING))
    assert state(now, Trusted(hash=now.hash)).state == "trusted"
    assert state(now, Trusted(hash="other")).state == "changed"
    assert state(now, Trusted(hash="")).state == "untrusted"


def test_links_are_followed_and_those_that_go_round_end(tmp_path: Path) -> None:
    project = put(tmp_path / "project", {".mcp.json": "{}"})
    put(tmp_path / "outside", {"SKILL.md": "one"})
    (project / ".claude").mkdir()
    (project / ".claude/skills").symlink_to(tmp_path / "outside")
    (tmp_path / "outside/round").symlink_to(tmp_path / "outside")
    before = inventory(project)
    assert [item.path for item in before.items] == [".claude/skills/SKILL.md", ".mcp.json"]
    (tmp_path / "outside/SKILL.md").write_text("two")
    assert inventory(project).hash != before.hash


def test_what_can_not_be_read_whole_can_not_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, EVERYTHING)
    monkeypatch.setattr(trust, "MAX_FILES", 3)
    few = inventory(tmp_path)
    assert not few.whole
    monkeypatch.undo()
    monkeypatch.setattr(trust, "MAX_BYTES", 3)
    small = inventory(tmp_path)
    assert not small.whole
    monkeypatch.undo()
    os.mkfifo(tmp_path / ".claude/skills/pipe")
    (tmp_path / ".claude/skills/gone").symlink_to(tmp_path / "nowhere")
    odd = inventory(tmp_path)
    assert {item.sha for item in odd.items if len(item.sha) != 64} == {"can't be read"}
    for now in (few, small, odd):
        view = state(now, trusted_now(now, ""))
        assert (view.state, view.hash) == ("untrusted", "")
        assert "can't be trusted" in view.sentence


def test_hostile_names_and_commands_can_be_sent_and_move_no_cursor(tmp_path: Path) -> None:
    put(tmp_path, {".mcp.json": json.dumps({"a": {"command": "x\u001b[2J\u202e y", "args": [1, "z"]}})})
    put(tmp_path, {".claude/skills/" + os.fsdecode(b"\xff\x1b.md"): "x"})
    now = inventory(tmp_path)
    text = msgspec.json.encode(state(now, trusted_now(now, ""))).decode()
    assert "\x1b" not in text
    assert "\\u001b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("content", [b"\xff", b"[" * 100_000, b"{}", b"[]", b"null", b'{"command": [1]}'])
def test_files_that_can_not_be_parsed_count_all_the_same(tmp_path: Path, content: bytes) -> None:
    for name in (".mcp.json", ".promptside/config.toml"):
        put(tmp_path, {name: ""})
        (tmp_path / name).write_bytes(content)
    assert len(inventory(tmp_path).items) == 2
    assert [item.runs for item in inventory(tmp_path).items] == [(), ()]


def test_what_is_kept_is_plain(tmp_path: Path) -> None:
    kept = trusted_now(inventory(put(tmp_path, EVERYTHING)), "1 May")
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Trusted) == kept
    shutil.rmtree(tmp_path / ".claude")
    assert inventory(tmp_path) != Inventory()
