"""What the Claude CLI runs before a tool changes a file: where an editor holds that file unsaved, it is to ask.

It is run by path, with the standard library only, and works while no daemon does. Whatever is wrong with it is in
nobody's way: it says nothing then, and the tool is treated as ever.
"""

import json
import os
import sys

MARK = "promptside unsaved "
"""What the reason of such an ask begins with; the file and its editor follow as JSON."""


def verdict(held: dict[str, str], wanted: dict[str, object]) -> str:
    """The hook's answer to a tool use, given the editor of each held file; empty where there is nothing to say."""
    given = wanted.get("tool_input")
    named = [given.get(key) for key in ("file_path", "notebook_path")] if isinstance(given, dict) else []
    for name in named:
        if isinstance(name, str) and name:
            place = os.path.join(str(wanted.get("cwd") or ""), name)  # noqa: PTH118  # pathlib costs 10 ms a start
            for file, client in held.items():
                if _same(file, place):
                    reason = MARK + json.dumps({"file": file, "client": client})
                    said = {"hookEventName": "PreToolUse", "permissionDecision": "ask"}
                    return json.dumps({"hookSpecificOutput": {**said, "permissionDecisionReason": reason}})
    return ""


def _same(file: str, place: str) -> bool:
    """Whether both names are of one file, also by a link, or in another case where that makes no difference."""
    if os.path.realpath(place) == file:
        return True
    try:
        return os.path.samefile(file, place)  # noqa: PTH121  # see above
    except OSError:
        return False


def main(list_of_files: str) -> None:
    """Read the tool use from the input, and the files from the list that the daemon keeps."""
    with open(list_of_files, encoding="utf-8") as held:  # noqa: PTH123  # see above
        sys.stdout.write(verdict(json.load(held), json.load(sys.stdin)))


if __name__ == "__main__":
    main(sys.argv[1])
