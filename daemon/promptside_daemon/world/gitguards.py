"""What a repository's settings say about programs, and the person's word that is put over it. Pure."""

from __future__ import annotations

import re

# Settings by which a repository can have a program run, and what stands in for its word where the person
# has none of their own. Editors, pagers, ssh and askpass are not here: the environment has them.
_PROGRAMS = tuple(
    (re.compile(pattern, re.DOTALL), instead)
    for pattern, instead in (
        (r"filter\..*\.(clean|smudge|process)", ""),
        (r"filter\..*\.required", "false"),
        (r"diff\..*\.textconv", "cat"),
        (r"diff\.(.*\.command|external)", ""),
        (r"merge\..*\.driver", "git merge-file --marker-size=%L %A %O %B"),
        (r"core\.alternaterefscommand", "true"),
        (r"gpg\.(openpgp\.)?program", "gpg"),
        (r"gpg\.x509\.program", "gpgsm"),
        (r"gpg\.ssh\.program", "ssh-keygen"),
        (r"gpg\.ssh\.defaultkeycommand", "ssh-add -L"),
        (r"submodule\..*\.update", "checkout"),
        (r"trailer\..*\.(cmd|command)", 'printf %s "$1"'),
    )
)
# Here the first word wins, not the last, so nothing can stand in for it.
_FAR = re.compile(r"remote\..*\.(uploadpack|receivepack)", re.DOTALL)
_HOOK = re.compile(r"(hook\..*)\.[a-z]+", re.DOTALL)
_ALWAYS = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)


def guards_against(listed: bytes) -> tuple[list[tuple[str, str]], list[str]]:
    """From `git config --list -z --show-scope`: settings that win over the repository's, and the names of
    those that nothing can win over."""
    fields = listed.decode("utf-8", "surrogateescape").split("\0")[:-1]
    theirs: dict[str, None] = {}
    own: dict[str, str] = {}
    helpers: list[tuple[str, str]] = []
    settings = list(_ALWAYS)
    for scope, item in zip(fields[::2], fields[1::2], strict=True):
        key, _, value = item.partition("\n")
        if hook := _HOOK.fullmatch(key):
            # Hooks as settings (git 2.54) are not looked for below core.hooksPath.
            settings.append((f"{hook[1]}.enabled", "false"))
        elif scope in ("local", "worktree"):
            theirs[key] = None
        else:
            own[key] = value
            if key.startswith("credential.") and key.endswith("helper"):
                helpers.append((key, value))
    for key in theirs:
        for pattern, instead in _PROGRAMS:
            if pattern.fullmatch(key):
                settings.append((key, own.get(key, instead)))
    # An empty helper forgets all before it, also those named for one address; then the person's come back.
    return [*settings, ("credential.helper", ""), *helpers], [key for key in theirs if _FAR.fullmatch(key)]
