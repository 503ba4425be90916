"""ED-12: comments on lines are one word to the agent, the same from every client."""

from promptside_protocol.comments import QUOTED, LineComment, feedback


def test_comments_follow_the_words_in_the_order_of_files_and_lines() -> None:
    comments = (
        LineComment(path="b.py", text="All of it is too long."),
        LineComment(path="a.py", line=9, end_line=11, text="Why?", quote="x = 1\n"),
        LineComment(path="a.py", line=2, text="  Name it.  "),
        LineComment(path="c.py", line=1, text="   "),
    )
    assert feedback(" Again. ", comments) == (
        "Again.\n\nAbout `a.py`, line 2:\n\nName it.\n\n"
        "About `a.py`, lines 9-11:\n\n```\nx = 1\n```\n\nWhy?\n\n"
        "About `b.py`:\n\nAll of it is too long."
    )
    assert feedback("", ()) == ""


def test_a_quotation_closes_its_own_fence_and_is_cut() -> None:
    said = feedback("", [LineComment(path="a.md", line=1, text="No.", quote="```\ncode\n```")])
    assert "````\n```\ncode\n```\n````" in said
    long = feedback("", [LineComment(path="a", line=1, text="No.", quote="x\n" * (QUOTED + 2))])
    assert long.count("x\n") == QUOTED
    assert "(2 more lines.)" in long
