"""Which files editors hold unsaved: by whatever name, of several editors, and of one that goes (ED-11)."""

from pathlib import Path

from promptside_daemon.buffers import FILES, Buffers
from promptside_daemon.engine.given import UnsavedFile
from promptside_daemon.rpc.who import Who


def who(client: str, connection: int) -> Who:
    return Who(
        client=client,
        user="ada",
        pid=1,
        session="person",
        attempt="",
        environment={},
        cwd="/",
        connection=connection,
    )


def test_a_file_is_the_same_by_whatever_name(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").touch()
    (tmp_path / "link").symlink_to(root)
    (root / "other.py").symlink_to(root / "src" / "a.py")
    names = (root / "src" / "a.py", tmp_path / "link" / "src" / "a.py", root / "src" / ".." / "other.py")
    for name in names:
        buffers = Buffers()
        buffers.tell(who("vscode", 1), [str(name), "relative.py", ""])
        expected = (UnsavedFile(path="src/a.py", client="vscode"),)
        assert buffers.under(root) == buffers.under(tmp_path / "link") == expected
        assert buffers.under(tmp_path / "elsewhere") == ()


def test_documents_of_ours_are_no_sources_and_neighbours_are_not_inside(tmp_path: Path) -> None:
    root = tmp_path / "project"
    inside = [".promptside/tasks/1-a/task.md", ".promptside/drafts/task-1.md", ".promptside/DESK.md"]
    held = [
        *(root / name for name in inside),
        tmp_path / "project2" / "a.py",
        root / ".promptside" / "x.toml",
    ]
    buffers = Buffers()
    buffers.tell(who("kate", 1), map(str, held))
    assert [file.path for file in buffers.under(root)] == [".promptside/x.toml"]


def test_what_nobody_holds_any_more_is_told_with_the_reason(tmp_path: Path) -> None:
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    buffers = Buffers()
    assert buffers.tell(who("kate", 1), [a, b]) == {}
    assert buffers.tell(who("zed", 2), [a]) == {}
    assert buffers.by_file() == {a: "kate and zed", b: "kate"}
    assert buffers.tell(who("kate", 1), []) == {b: "It was saved or closed meanwhile."}
    assert buffers.tell(who("kate", 3), [b]) == {}
    assert buffers.gone(who("kate", 1)) == {}, "it came back by another connection"
    assert buffers.gone(who("zed", 2)) == {a: "Meanwhile zed was closed, which held the changes."}
    assert buffers.by_file() == {b: "kate"}
    buffers.tell(who("kate", 3), (str(tmp_path / str(number)) for number in range(2 * FILES)))
    assert len(buffers.by_file()) == FILES
