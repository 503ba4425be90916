"""Pipeline, prompt and settings files in an editor, against a real server and a real daemon (ED-2, ED-5, ED-6)."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from lsprotocol import types
from pygls.protocol import default_converter
from rig.lsp_editor import LspEditor
from rig.user import User

T = TypeVar("T")
CONVERTER: Any = default_converter()  # type: ignore[no-untyped-call]  # pygls has no type for it

PIPELINE = """title = "Small"

[persona.reviewer]
model = "opus"

[[stage]]
name = "Plan it"
tools = ["Read", "Grep"]
persona = "reviewer"
prompt = "prompts/small/plan.md.j2"

[[stage]]
name = "Build"
rules = ["Edit(./**)"]
gate = { type = "require_approval" }
prompt = \"\"\"
Carry out:

{{ previous_output | trim }}
\"\"\"

[stage.limits]
turns = 3
"""
PROMPT = "Plan {{ task.title }}.\n\n{{ previous_output }}\n"


CAPABILITIES = {
    "workspace": {
        "codeLens": {"refreshSupport": True},
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create"]},
    }
}


class Editor:
    """An editor in a project, with a server of its own, whose messages are typed."""

    def __init__(self, user: User, runner: asyncio.Runner) -> None:
        self.wire = LspEditor(user, CAPABILITIES)
        self._runner = runner
        self._texts: dict[Path, str] = {}
        self._version = 0
        self._told = 0
        """Messages before this one are old news."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def tell(self, method: str, params: Any) -> None:
        self.wire.tell(method, CONVERTER.unstructure(params))

    def ask(self, method: str, params: Any, kind: Any) -> Any:
        """What a request is answered with, as the type of its response has it."""
        result = self.run(self.wire.ask(method, CONVERTER.unstructure(params)))
        return CONVERTER.structure({"id": 1, "jsonrpc": "2.0", "result": result}, kind).result

    def open(self, path: Path, text: str | None = None) -> str:
        """Open a file, with this text in its buffer; its URI."""
        text = path.read_text() if text is None else text
        self._texts[path] = text
        document = types.TextDocumentItem(uri=path.as_uri(), language_id="toml", version=0, text=text)
        self.tell(types.TEXT_DOCUMENT_DID_OPEN, types.DidOpenTextDocumentParams(text_document=document))
        return path.as_uri()

    def type(self, path: Path, *texts: str) -> None:
        """Change the whole buffer, as often as there are texts, without a pause."""
        for text in texts:
            self._version += 1
            self._texts[path] = text
            self.tell(
                types.TEXT_DOCUMENT_DID_CHANGE,
                types.DidChangeTextDocumentParams(
                    text_document=types.VersionedTextDocumentIdentifier(
                        uri=path.as_uri(), version=self._version
                    ),
                    content_changes=[types.TextDocumentContentChangeWholeDocument(text=text)],
                ),
            )

    def save(self, path: Path) -> None:
        path.write_text(self._texts[path])
        self.tell(types.TEXT_DOCUMENT_DID_SAVE, types.DidSaveTextDocumentParams(text_document=identity(path)))

    def close(self, path: Path) -> None:
        self.tell(
            types.TEXT_DOCUMENT_DID_CLOSE, types.DidCloseTextDocumentParams(text_document=identity(path))
        )

    def diagnostics(
        self, path: Path, when: Callable[[Sequence[types.Diagnostic]], object]
    ) -> Sequence[types.Diagnostic]:
        """The diagnostics of a file as soon as they are as told."""

        def here(message: Any) -> bool:
            params = message.get("params", {})
            if message.get("method") != method or params["uri"] != path.as_uri():
                return False
            return bool(when(CONVERTER.structure(params, types.PublishDiagnosticsParams).diagnostics))

        method = types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS
        found = self.run(self.wire.until(here, self._told))
        self._told = self.wire.heard.index(found) + 1
        params = CONVERTER.structure(found["params"], types.PublishDiagnosticsParams)
        return cast("Sequence[types.Diagnostic]", params.diagnostics)

    def published(self, uri: str) -> bool:
        """Whether anything was ever said of a file."""
        return any(p["uri"] == uri for p in self.wire.notes(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS))

    def until_daemon(self) -> None:
        """Wait until there is a daemon that judges files."""
        path = self.wire._folder / ".promptside" / "config.toml"
        self.open(path, "nothing = 1\n")
        self.diagnostics(path, len)
        self.close(path)
        self.diagnostics(path, lambda found: not found)

    def settled(self, path: Path) -> None:
        """Wait until the daemon has looked at a pipeline that is in order: its lenses know its stages then."""
        self.type(path, f"titel = 1\n{self._texts[path]}")
        self.diagnostics(path, len)
        self.type(path, self._texts[path].removeprefix("titel = 1\n"))
        self.diagnostics(path, lambda found: not found)

    def fixes(self, path: Path, diagnostic: types.Diagnostic) -> list[types.CodeAction]:
        params = types.CodeActionParams(
            text_document=identity(path),
            range=diagnostic.range,
            context=types.CodeActionContext(diagnostics=[diagnostic]),
        )
        found = self.ask(types.TEXT_DOCUMENT_CODE_ACTION, params, types.CodeActionResponse)
        quick = types.CodeActionKind.QuickFix
        return [one for one in found or () if isinstance(one, types.CodeAction) and one.kind == quick]

    def fixed(self, path: Path, action: types.CodeAction) -> str:
        """The buffer after an action, whose edit is of one line."""
        assert action.edit is not None
        assert action.edit.changes is not None
        (edit,) = action.edit.changes[path.as_uri()]
        lines = self._texts[path].split("\n")
        line = edit.range.start.line
        old = lines[line].encode("utf-16-le")
        start, end = edit.range.start.character * 2, edit.range.end.character * 2
        lines[line] = (old[:start] + edit.new_text.encode("utf-16-le") + old[end:]).decode("utf-16-le")
        return "\n".join(lines)

    def completions(self, path: Path, needle: str) -> dict[str, types.CompletionItem]:
        params = types.CompletionParams(text_document=identity(path), position=self._behind(path, needle))
        found = self.ask(types.TEXT_DOCUMENT_COMPLETION, params, types.CompletionResponse)
        items = found.items if isinstance(found, types.CompletionList) else found or []
        return {item.label: item for item in items}

    def completed(self, path: Path, needle: str, label: str) -> str:
        """The line after a completion was taken."""
        edit = self.completions(path, needle)[label].text_edit
        assert isinstance(edit, types.TextEdit)
        line = self._texts[path].split("\n")[edit.range.start.line]
        return line[: edit.range.start.character] + edit.new_text + line[edit.range.end.character :]

    def hover(self, path: Path, needle: str) -> str:
        params = types.HoverParams(text_document=identity(path), position=self._behind(path, needle))
        found = self.ask(types.TEXT_DOCUMENT_HOVER, params, types.HoverResponse)
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return str(found.contents.value)

    def definitions(self, path: Path, needle: str) -> list[tuple[str, int]]:
        """File name and line of what a place leads to."""
        params = types.DefinitionParams(text_document=identity(path), position=self._behind(path, needle))
        found = self.ask(types.TEXT_DOCUMENT_DEFINITION, params, types.DefinitionResponse)
        places = found if isinstance(found, list) else [found] if found else []
        return [
            (place.uri.rpartition("/")[2], place.range.start.line)
            for place in places
            if isinstance(place, types.Location)
        ]

    def lenses(self, path: Path) -> list[types.CodeLens]:
        params = types.CodeLensParams(text_document=identity(path))
        return list(self.ask(types.TEXT_DOCUMENT_CODE_LENS, params, types.CodeLensResponse) or ())

    def _behind(self, path: Path, needle: str) -> types.Position:
        """The place in a buffer where the cursor is in a needle, which has `^` there."""
        text = self._texts[path]
        before, _, after = needle.partition("^")
        at = text.index(before + after) + len(before)
        line = text.count("\n", 0, at)
        return types.Position(line=line, character=at - (text.rfind("\n", 0, at) + 1))


@pytest.fixture
def editor(user: User) -> Iterator[Editor]:
    user.commit_all()
    with asyncio.Runner() as runner:
        made = Editor(user, runner)
        made.run(made.wire.__aenter__())
        try:
            made.until_daemon()
            yield made
        finally:
            made.run(made.wire.__aexit__())


@pytest.fixture
def small(user: User) -> Path:
    """A pipeline in order, with its prompt."""
    directory = user.project / ".promptside" / "pipelines"
    (directory / "prompts" / "small").mkdir(parents=True)
    (directory / "prompts" / "small" / "plan.md.j2").write_text(PROMPT)
    (directory / "small.toml").write_text(PIPELINE)
    return directory / "small.toml"


def identity(path: Path) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri=path.as_uri())


def marked(text: str, diagnostic: types.Diagnostic) -> str:
    """What a diagnostic underlines, as an editor that counts in UTF-16 does."""
    line = text.split("\n")[diagnostic.range.start.line].encode("utf-16-le")
    return line[diagnostic.range.start.character * 2 : diagnostic.range.end.character * 2].decode("utf-16-le")


# --- faults -----------------------------------------------------------------------------------------


def test_a_fault_is_said_while_typing_and_taken_back(editor: Editor, small: Path) -> None:
    """ED-5: at its place, with the newest text, and only as long as the file is open."""
    editor.open(small)
    broken = PIPELINE.replace("tools =", "toolz =")
    editor.type(small, broken)
    (found,) = editor.diagnostics(small, len)
    assert marked(broken, found) == "toolz"
    assert (found.code, found.source, found.severity) == (
        "pipeline-file",
        "promptside",
        types.DiagnosticSeverity.Error,
    )
    assert "Did you mean `tools`?" in found.message
    texts = [PIPELINE.replace("tools =", f"tool{letter} =") for letter in "abcdefghijklmnop"]
    editor.type(small, *texts)
    (found,) = editor.diagnostics(small, lambda found: found and "toolz" not in found[0].message)
    assert "`toolp`" in found.message, "what was typed last is what was judged"
    editor.type(small, PIPELINE)
    editor.diagnostics(small, lambda found: not found)
    editor.type(small, broken)
    editor.diagnostics(small, len)
    editor.close(small)
    editor.diagnostics(small, lambda found: not found)


FAULTS = [
    ("titel = 1\n" + PIPELINE, "titel", "title = 1"),
    (PIPELINE.replace("tools =", "toolz ="), "toolz", 'tools = ["Read", "Grep"]'),
    (PIPELINE.replace('"Grep"', '"Gerp"'), "Gerp", 'tools = ["Read", "Grep"]'),
    (PIPELINE.replace('= "reviewer"', '= "reviwer"'), "reviwer", 'persona = "reviewer"'),
    (PIPELINE.replace("require_approval", "require_aproval"), "", 'gate = { type = "require_approval" }'),
    (PIPELINE.replace("Edit(./**)", "Edit"), "Edit", 'rules = ["Edit(./**)"]'),
    (PIPELINE.replace("previous_output", "previus_output"), "previus_output", "{{ previous_output | trim }}"),
    (PIPELINE.replace("| trim", "| trimm"), "trimm", "{{ previous_output | trim }}"),
    (PIPELINE.replace("turns = 3", "turn = 3"), "turn", "turns = 3"),
    (PIPELINE.replace('\nname = "Build"', "\n"), "stage", '[[stage]]\nname = ""'),
]


def test_a_fault_has_the_edit_that_mends_it(editor: Editor, small: Path) -> None:
    """ED-5: a code action does what the hint says."""
    editor.open(small)
    for text, under, line in FAULTS:
        editor.type(small, text)
        (found,) = editor.diagnostics(small, len)
        if under:
            assert marked(text, found) == under
        (action,) = editor.fixes(small, found)
        mended = editor.fixed(small, action)
        assert line in mended, f"{found.message}: {mended}"
        editor.type(small, mended)
        editor.diagnostics(small, lambda found: all("Did you mean" not in one.message for one in found))
        editor.type(small, PIPELINE)
        if 'name = ""' in mended:  # a name that is empty is the next fault
            editor.diagnostics(small, lambda found: not found)


def test_places_are_counted_as_the_editor_counts(editor: Editor, small: Path) -> None:
    text = PIPELINE.replace('"Edit(./**)"', '"Bash(echo 🎭)", "Edit"')
    editor.open(small, text)
    (found,) = editor.diagnostics(small, len)
    assert marked(text, found) == "Edit"
    (action,) = editor.fixes(small, found)
    assert 'rules = ["Bash(echo 🎭)", "Edit(./**)"]' in editor.fixed(small, action)


def test_a_prompt_that_is_missing_can_be_made(editor: Editor, small: Path) -> None:
    prompt = small.parent / "prompts" / "small" / "plan.md.j2"
    prompt.unlink()
    editor.open(small)
    (found,) = editor.diagnostics(small, len)
    assert marked(PIPELINE, found) == '"prompts/small/plan.md.j2"'
    (action,) = editor.fixes(small, found)
    assert action.title == "Create plan.md.j2"
    assert action.edit is not None
    create, fill = action.edit.document_changes or ()
    assert isinstance(create, types.CreateFile)
    assert isinstance(fill, types.TextDocumentEdit)
    assert create.uri == fill.text_document.uri == prompt.as_uri()
    editor.open(prompt, fill.edits[0].new_text)  # type: ignore[union-attr]  # a plain edit
    editor.save(prompt)
    editor.diagnostics(small, lambda found: not found)


def test_a_fault_of_a_prompt_is_said_in_both_files(editor: Editor, small: Path) -> None:
    prompt = small.parent / "prompts" / "small" / "plan.md.j2"
    prompt.write_text("Plan\n{{ task.titel }}\n")
    editor.open(small)
    (found,) = editor.diagnostics(small, len)
    assert marked(PIPELINE, found) == '"prompts/small/plan.md.j2"'
    assert found.message.startswith("plan.md.j2, line 2: There is no `titel`")
    (related,) = found.related_information or ()
    assert (related.location.uri, related.location.range.start.line) == (prompt.as_uri(), 1)
    editor.open(prompt)
    (found,) = editor.diagnostics(prompt, len)
    assert (found.code, marked(prompt.read_text(), found)) == ("pipeline-prompt", "titel")
    (action,) = editor.fixes(prompt, found)
    editor.type(prompt, editor.fixed(prompt, action))
    editor.diagnostics(prompt, lambda found: not found)
    editor.save(prompt)
    editor.diagnostics(small, lambda found: not found)


def test_settings_are_judged_by_whose_file_it_is(editor: Editor, user: User) -> None:
    text = '[checks]\ntets = "make test"\n\n[retention]\ndays = 3\n'
    project = user.project / ".promptside" / "config.toml"
    editor.open(project, text)
    found = editor.diagnostics(project, lambda found: len(found) == 2)
    assert [(one.code, marked(text, one)) for one in found] == [
        ("pipeline-settings", "tets"),
        ("pipeline-settings", "days"),
    ]
    own = user.data / "config" / "config.toml"
    editor.open(own, text)
    (found_own,) = editor.diagnostics(own, len)
    assert marked(text, found_own) == "tets"
    broken = "[checks\n"
    editor.type(own, broken)
    (found_own,) = editor.diagnostics(own, lambda found: found and found[0].code == "pipeline-toml")
    assert "not TOML" in found_own.message


def test_files_elsewhere_are_not_ours(editor: Editor, small: Path, user: User) -> None:
    wrong = "titel = 1\n"
    others = [
        user.project / "pipelines" / "x.toml",
        user.project / "config.toml",
        small.parent / "plan.md.j2",
        small.parent / "prompts" / "x.toml",
    ]
    for path in others:
        editor.open(path, wrong)
    untitled = types.TextDocumentItem(uri="untitled:config.toml", language_id="toml", version=0, text=wrong)
    editor.tell(types.TEXT_DOCUMENT_DID_OPEN, types.DidOpenTextDocumentParams(text_document=untitled))
    editor.open(small, wrong + PIPELINE)
    editor.diagnostics(small, len)
    assert not any(editor.published(path.as_uri()) for path in others)
    assert not editor.published("untitled:config.toml")
    assert editor.completions(others[0], "titel^") == {}
    assert editor.hover(others[0], "tit^el") == ""


# --- completion and hover ---------------------------------------------------------------------------


def test_keys_are_offered_in_their_table(editor: Editor, small: Path) -> None:
    """ED-6"""
    text = PIPELINE.replace('tools = ["Read", "Grep"]', "perm").replace("turns = 3", "sil")
    editor.open(small, text)
    stage = editor.completions(small, "perm^")
    assert {"permission", "output", "gate"} <= stage.keys()
    assert not {"name", "prompt", "silence_s", "model_"} & stage.keys(), "what is there is not offered again"
    assert editor.completed(small, "perm^", "permission") == "permission = "
    limits = editor.completions(small, "sil^")
    assert {"silence_s", "turns"} <= limits.keys()
    assert "permission" not in limits
    assert "seconds" in str(limits["silence_s"].documentation).lower()
    inline = text.replace('type = "require_approval"', "ty")
    editor.type(small, inline)
    assert {"type", "min", "max", "fields"} == editor.completions(small, "{ ty^ }").keys()
    editor.type(small, text + "\n[")
    assert {"[[stage]]", "[persona.NAME]", "[stage.limits]"} <= editor.completions(small, "sil\n\n[^").keys()
    assert editor.completed(small, "sil\n\n[^", "[[stage]]") == "[[stage]]"


VALUES = [
    ('tools = ["Read", "Grep"]', 'output = "o"', 'output = "o^', "options", 'output = "options"'),
    ('tools = ["Read", "Grep"]', "output = ", "output = ^", "checklist", 'output = "checklist"'),
    ('tools = ["Read", "Grep"]', 'permission = ""', 'permission = "^', "deny", 'permission = "deny"'),
    ('"Grep"', '"Gl', '"Gl^', "Glob", 'tools = ["Read", "Glob]'),
    ('"Grep"]', '"Gl"]', '"Gl^', "Glob", 'tools = ["Read", "Glob"]'),
    ("require_approval", "re", 'type = "re^', "require_fields", 'gate = { type = "require_fields" }'),
    ('persona = "reviewer"', 'persona = "r"', 'persona = "r^', "reviewer", 'persona = "reviewer"'),
    ('model = "opus"', 'model = "s"', 'model = "s^', "sonnet", 'model = "sonnet"'),
    ('rules = ["Edit(./**)"]', 'rules = ["Ed"]', '"Ed^', "Edit(./**)", 'rules = ["Edit(./**)"]'),
    (
        "prompts/small/plan.md.j2",
        "pro",
        'prompt = "pro^',
        "prompts/small/plan.md.j2",
        'prompt = "prompts/small/plan.md.j2"',
    ),
    ("previous_output | trim", "prev", "{{ prev^", "previous_output", "{{ previous_output }}"),
    ("previous_output | trim", "task.ti", "task.ti^", "title", "{{ task.title }}"),
    ("| trim", "| tr", "| tr^", "trim", "{{ previous_output | trim }}"),
]


def test_values_are_offered(editor: Editor, small: Path) -> None:
    """ED-6: those that the key can have, in the quotes that are there, or with their own."""
    editor.open(small)
    for old, new, cursor, label, line in VALUES:
        assert old in PIPELINE
        editor.type(small, PIPELINE.replace(old, new, 1))
        assert editor.completed(small, cursor, label) == line


def test_a_prompt_offers_variables_and_the_documents_of_earlier_stages(
    editor: Editor, small: Path, user: User
) -> None:
    """ED-6"""
    second = small.parent / "prompts" / "small" / "build.md.j2"
    small.write_text(
        PIPELINE.replace('prompt = """', 'prompt = "prompts/small/build.md.j2"\ndescription = """')
    )
    second.write_text("Build.\n")
    text = (
        "{% i\n{{ user_\n{{ task.\n{{ x }} {{ user_input | \nRead {{ task.directory }}/\n{{ nope }}\nplain\n"
    )
    editor.open(second, text)
    editor.diagnostics(second, len)
    assert "if" in editor.completions(second, "{% i^")
    assert {"user_input", "user_decision"} <= editor.completions(second, "{{ user_^\n").keys()
    assert {"title", "files", "directory"} <= editor.completions(second, "{{ task.^\n").keys()
    assert {"trim", "indent"} <= editor.completions(second, "| ^").keys()
    assert set(editor.completions(second, "directory }}/^")) == {"01-plan-it.md"}
    assert editor.completions(second, "pla^in") == {}


def test_settings_have_their_own_words(editor: Editor, user: User) -> None:
    path = user.data / "config" / "config.toml"
    editor.open(
        path, '[git]\npu\n\n[agent]\ndefault = ""\n\n[pipeline]\ndefault = ""\n\n[notify]\ndesktop = \n'
    )
    editor.diagnostics(path, len)
    assert editor.completed(path, "pu^", "push") == "push = "
    assert "rehearsal" in editor.completions(path, 'default = "^"\n\n[pipe')
    assert "standard" in editor.completions(path, '[pipeline]\ndefault = "^')
    assert editor.completed(path, "desktop = ^", "false") == "desktop = false"
    assert "your own file" in editor.hover(path, "desk^top")


def test_a_word_is_explained(editor: Editor, small: Path) -> None:
    """ED-6"""
    editor.open(small)
    editor.settled(small)
    assert editor.hover(small, "rul^es =").startswith("**rules** (list of texts)")
    assert "Reads a file." in editor.hover(small, '"Re^ad"')
    assert "reads the document and approves" in editor.hover(small, "require_a^pproval")
    assert "output of the stage before" in editor.hover(small, "previous_^output")
    assert "Without the blanks" in editor.hover(small, "| tr^im")
    assert "Turns of one attempt" in editor.hover(small, "tur^ns")
    assert "latest Opus" in editor.hover(small, '"op^us"')
    assert "A step of the pipeline" in editor.hover(small, "[[sta^ge]]")
    assert editor.hover(small, "Carry^ out") == ""
    prompt = small.parent / "prompts" / "small" / "plan.md.j2"
    editor.open(prompt)
    assert editor.hover(prompt, "task.ti^tle") == "**task.title**\n\nIts title."


# --- finding one's way ------------------------------------------------------------------------------


def test_words_lead_to_what_they_name(editor: Editor, small: Path) -> None:
    """ED-6: from a stage to its prompt, from a variable to the stage it comes from, from a persona to its table."""
    prompt = small.parent / "prompts" / "small" / "plan.md.j2"
    text = PIPELINE.replace('prompt = "prompts/small/plan.md.j2"', 'prompt = "prompts/small/plan.md.j2"', 1)
    editor.open(small, text)
    editor.settled(small)
    assert editor.definitions(small, "small/pl^an") == [("plan.md.j2", 0)]
    assert editor.definitions(small, '= "revi^ewer"') == [("small.toml", 2)]
    assert editor.definitions(small, "previous_^output") == [("small.toml", 5)]
    assert editor.definitions(small, 'nam^e = "Plan it"') == [("plan.md.j2", 0)]
    assert editor.definitions(small, "Carry^ out") == []
    moved = PIPELINE.replace(
        '\n[[stage]]\nname = "Plan it"',
        '\n[[stage]]\nname = "First"\nprompt = "Go on."\n\n[[stage]]\nname = "Plan it"',
    )
    editor.type(small, moved)
    editor.save(small)
    editor.open(prompt, PROMPT.replace("title", "titel"))
    editor.diagnostics(prompt, len)
    assert editor.definitions(prompt, "previous_^output") == [("small.toml", 5)]


def test_stages_are_symbols(editor: Editor, small: Path) -> None:
    """ED-6"""
    editor.open(small)
    params = types.DocumentSymbolParams(text_document=identity(small))
    found = editor.ask(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, params, types.DocumentSymbolResponse)
    names = [(one.name, one.range.start.line) for one in found or () if isinstance(one, types.DocumentSymbol)]
    assert names == [("persona.reviewer", 2), ("Plan it", 5), ("Build", 11), ("stage.limits", 21)]


def test_a_stage_says_which_tasks_go_through_it(editor: Editor, small: Path, user: User) -> None:
    """ED-2: and begins the order for another one."""
    editor.open(small)
    editor.settled(small)
    lens = editor.lenses(small)
    assert [(one.range.start.line, one.command and one.command.title) for one in lens] == [
        (5, "Run with small"),
        (11, "Run with small"),
    ]
    assert lens[0].command is not None
    assert lens[0].command.command == "promptside.newTask"
    assert list(lens[0].command.arguments or ()) == [{"pipeline": "small", "project": str(user.project)}]
    order = {"command": lens[0].command.command, "arguments": list(lens[0].command.arguments or ())}
    editor.run(editor.wire.ask(types.WORKSPACE_EXECUTE_COMMAND, order))
    assert list((user.project / ".promptside" / "drafts").iterdir()), "the lens began a draft"
    user.promptside("trust")
    user.promptside("task", "new", "One", "--pipeline", "small", "--agent", "rehearsal-fast")

    since = len(editor.wire.heard)
    refresh = types.WORKSPACE_CODE_LENS_REFRESH
    titles: list[str] = []
    while not any("Used by" in title for title in titles):
        news = editor.run(editor.wire.until(lambda m: m.get("method") == refresh, since))
        since = editor.wire.heard.index(news) + 1
        titles = [one.command.title for one in editor.lenses(small) if one.command is not None]
    assert titles == ["Used by 1 task, 1 in this stage · Run with small", "Used by 1 task · Run with small"]
    user.promptside("run", code=3)
    while len(found := editor.definitions(small, 'nam^e = "Plan it"')) < 2:
        news = editor.run(editor.wire.until(lambda m: m.get("method") == refresh, since))
        since = editor.wire.heard.index(news) + 1
    assert found == [("plan.md.j2", 0), ("01-plan-it.md", 0)], "the prompt, and the document of the task"
