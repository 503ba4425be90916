"""A pipeline file is read as it is meant, and what is wrong with it is said at its place (ST-3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from promptside_daemon.engine.pipeline import (
    Persona,
    RequireAllChecked,
    RequireApproval,
    RequireFields,
    RequireSelection,
    StageLimits,
)
from promptside_daemon.pipelines.load import Loaded, load

Write = Callable[..., Loaded]

STAGE = '[[stage]]\nname = "One"\nprompt = "Do it."\n'


def test_st3_everything_about_a_stage_can_be_set(loaded: Write) -> None:
    found = loaded(
        """
        title = "Mine"
        description = "For docs."

        [persona.careful]
        system_prompt = "Take care."
        model = "opus"

        [[stage]]
        id = "first-look"
        name = "First look"
        description = "Looks."
        prompt = "prompts/look.md.j2"
        input = "both"
        output = "options"
        schema = { type = "object", required = ["options"] }
        gate = { type = "require_selection", min = 1, max = 2 }
        tools = ["Read", "mcp__tracker__search"]
        permission = "deny"
        rules = ["Bash(make docs)"]
        persona = "careful"
        preparation = "Say it shorter: {{task_description}}"
        model = "sonnet"
        session = "continue"
        artifact = "LOOK.md"
        limits = { turns = 3, stage_s = 60, budget_usd = 0.5 }
        """,
        look="Look at {{task_description}}.",
    )
    assert found.faults == ()
    assert found.pipeline is not None
    assert (found.pipeline.name, found.pipeline.title, found.pipeline.origin) == ("mine", "Mine", "user")
    (stage,) = found.pipeline.stages
    assert stage.prompt == "Look at {{task_description}}."
    assert stage.preparation == "Say it shorter: {{task_description}}"
    assert (stage.id, stage.name, stage.description) == ("first-look", "First look", "Looks.")
    assert (stage.input, stage.output, stage.session) == ("both", "options", "continue")
    assert stage.schema == {"type": "object", "required": ["options"]}
    assert stage.gate == RequireSelection(min=1, max=2)
    assert stage.tools == ("Read", "mcp__tracker__search")
    assert (stage.permission, stage.rules) == ("deny", ("Bash(make docs)",))
    assert stage.persona == Persona(name="careful", system_prompt="Take care.", model="opus")
    assert (stage.model, stage.artifact) == ("sonnet", "LOOK.md")
    assert stage.limits == StageLimits(turns=3, stage_s=60, budget_usd=0.5)


def test_what_is_not_set_has_a_default(loaded: Write) -> None:
    found = loaded('[[stage]]\nname = "Über: The 2nd"\nprompt = "x"\n[[stage]]\nname = "B"\nprompt = "x"\n')
    assert found.pipeline is not None
    first, second = found.pipeline.stages
    assert first.id == "ber-the-2nd"
    assert (first.input, second.input) == ("user", "previous")
    assert (first.output, first.tools, first.permission) == ("text", None, "ask")
    assert first.gate == RequireApproval()


@pytest.mark.parametrize(
    ("lines", "gate"),
    [
        ('output = "text"', RequireApproval()),
        ('output = "options"', RequireSelection(min=1, max=1)),
        ('output = "checklist"', RequireAllChecked()),
        ('output = "structured"\nschema = { type = "object", properties = { a = {} }, required = ["a"] }',
         RequireFields(("a",))),
        ('gate = "none"', None),
        ('gate = "require_approval"', RequireApproval()),
        ('output = "checklist"\ngate = "require_approval"', RequireApproval()),
        ('output = "options"\ngate = { type = "require_selection", min = 2 }', RequireSelection(2, 2)),
        ('output = "options"\ngate = { type = "require_selection", min = 0, max = 3 }',
         RequireSelection(0, 3)),
        # The four JSON texts of the source.
        ("""gate = '{"type": "require_approval"}'""", RequireApproval()),
        ("""output = "options"\ngate = '{"type": "require_selection", "min": 1, "max": 1}'""",
         RequireSelection(min=1, max=1)),
        ("""output = "checklist"\ngate = '{"type": "require_all_checked"}'""", RequireAllChecked()),
        ("""output = "structured"\ngate = '{"type": "require_fields", "fields": ["title", "description"]}'""",
         RequireFields(("title", "description"))),
    ],
)  # fmt: skip
def test_st5_gates_by_default_by_name_as_table_and_as_the_sources_json(
    loaded: Write, lines: str, gate: object
) -> None:
    found = loaded(STAGE + lines)
    assert found.faults == ()
    assert found.pipeline is not None
    assert found.pipeline.stages[0].gate == gate


def test_fields_without_a_schema_become_one(loaded: Write) -> None:
    found = loaded(STAGE + 'output = "structured"\ngate = { type = "require_fields", fields = ["a", "b"] }')
    assert found.pipeline is not None
    assert found.pipeline.stages[0].schema == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(("word", "tools"), [('"all"', None), ("[]", ()), ('["Read"]', ("Read",))])
def test_st9_tools_are_none_a_list_or_all(loaded: Write, word: str, tools: object) -> None:
    found = loaded(STAGE + f"tools = {word}")
    assert found.pipeline is not None
    assert found.pipeline.stages[0].tools == tools


def test_the_version_tells_states_of_file_and_prompt_apart(loaded: Write) -> None:
    text = '[[stage]]\nname = "One"\nprompt = "prompts/a.md.j2"\n'
    one, same = loaded(text, a="one"), loaded(text, a="one")
    other_prompt, other_file = loaded(text, a="two"), loaded(text + "# more", a="one")
    versions = [found.pipeline.version for found in (one, same, other_prompt, other_file) if found.pipeline]
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3


# Each text has its fault in the line that ends in "#!"; the words are part of the sentence or of the hint.
FAULTS = {
    "unknown key": (STAGE + "promt = 1 #!", "Did you mean `prompt`?"),
    "unknown key of the file": ('titel = "x" #!\n' + STAGE, "Did you mean `title`?"),
    "a name in the file": ('name = "x" #!\n' + STAGE, "file's name is the pipeline's name"),
    "no stage": ('title = "x"', "at least one stage"),
    "stage as table": ('[stage] #!\nname = "One"', "[[stage]]"),
    "no name": ('[[stage]] #!\nprompt = "x"', "`name` is missing"),
    "no prompt": ('[[stage]] #!\nname = "x"', "`prompt` is missing"),
    "empty name": ('[[stage]]\nprompt = "x"\nname = " " #!', "`name` is empty"),
    "empty prompt": ('[[stage]]\nname = "x"\nprompt = "  " #!', "prompt is empty"),
    "name of two lines": ('[[stage]]\nprompt = "x"\nname = "a\\nb" #!', "one line"),
    "wrong type": (STAGE + "description = 3 #!", "must be a text, not a number"),
    "list of wrong type": (STAGE + "rules = [1] #!", "must be a list of texts"),
    "table of wrong type": (STAGE + "limits = [1] #!", "must be a table, not a list"),
    "a date": (STAGE + "model = 2024-01-01 #!", "not a date"),
    "bad choice": (STAGE + 'output = "option" #!', "Did you mean `options`?"),
    "bad input": (STAGE + 'input = "previous" #!', "first stage has no stage before"),
    "source's word": (STAGE + '[[stage]]\nname="b"\nprompt="x"\ninput = "previous_stage" #!', "`previous`?"),
    "bad id": (STAGE + 'id = "One Two" #!', "can't be an id"),
    "no id to be made": ('[[stage]] #!\nname = "…"\nprompt = "x"', "Give the stage one"),
    "same id": (STAGE + '[[stage]]\nname = "Two"\nprompt = "x"\nid = "one" #!', "first is in line 1"),
    "same name": (STAGE + '[[stage]] #!\nname = "One"\nprompt = "x"', "Two stages have the id `one`"),
    "same artifact": (
        STAGE + 'artifact = "A.md"\n[[stage]]\nname = "b"\nprompt = "x"\nartifact = "a.md" #!',
        "Two stages have the artifact",
    ),
    "fixed by nobody": (STAGE + 'output = "checklist"\nfix = "b" #!', "no earlier stage `b`"),
    "fixed by itself": (STAGE + 'id = "a"\noutput = "checklist"\nfix = "a" #!', "no earlier stage `a`"),
    "fixes of no checklist": (
        STAGE + '[[stage]]\nname = "b"\nprompt = "x"\nfix = "a" #!',
        "Only the items of a checklist",
    ),
    "artifact elsewhere": (STAGE + 'artifact = "../A.md" #!', "plain file name"),
    "artifact of ours": (STAGE + 'artifact = "Task.md" #!', "own document"),
    "no such gate": (STAGE + 'gate = "require_aproval" #!', "Did you mean `require_approval`?"),
    "gate without type": (STAGE + "gate = { min = 1 } #!", "A gate has a `type`"),
    "gate of wrong type": (STAGE + "gate = 3 #!", "must be a table, or the name of a gate"),
    "gate's unknown key": (STAGE + 'gate = { type = "require_approval", max = 1 } #!', "has no `max`"),
    "gate's JSON": (STAGE + "gate = '{\"type\": ' #!", "not JSON"),
    "gate for another format": (STAGE + 'gate = "require_all_checked" #!', "needs the output `checklist`"),
    "selection of less than none": (
        STAGE + 'output = "options"\ngate = { type = "require_selection", min = 3, max = 2 } #!',
        "between 3 and 2",
    ),
    "selection by text": (
        STAGE + 'output = "options"\n[stage.gate]\ntype = "require_selection"\nmin = "1" #!',
        "`min` must be a whole number",
    ),
    "fields of wrong type": (
        STAGE + 'output = "structured"\ngate = { type = "require_fields", fields = "a" } #!',
        "list of names",
    ),
    "no field": (STAGE + 'output = "structured"\ngate = "require_fields" #!', "names no field"),
    "field not in the schema": (
        STAGE + 'output = "structured"\nschema = { type = "object", properties = { title = {} } }\n'
        'gate = { type = "require_fields", fields = ["titel"] } #!',
        "Did you mean `title`?",
    ),
    "structured without fields": (
        STAGE + 'output = "structured"\ngate = "require_approval" #!',
        "needs a `schema`",
    ),
    "schema of a text": (STAGE + "schema = {} #!", "A text has no schema"),
    "schema's JSON": (STAGE + 'output = "options"\nschema = "{" #!', "not JSON"),
    "no schema": (STAGE + 'output = "options"\nschema = { type = "object", required = 3 } #!', "/required"),
    "schema of a list": (STAGE + 'output = "options"\nschema = { type = "array" } #!', "of an object"),
    "schema that fetches": (
        STAGE + 'output = "options"\n[stage.schema] #!\ntype = "object"\n'
        '[stage.schema.properties.a]\n"$ref" = "http://127.0.0.1:1/x"',
        "point into the schema itself",
    ),
    "schema with a date": (
        STAGE + 'output = "options"\nschema = { type = "object", default = 2024-01-01 } #!',
        "JSON has no date",
    ),
    "schema with a bad pattern": (
        STAGE + 'output = "options"\nschema = { type = "object", properties = { a = { pattern = "(" } } } #!',
        "not a regular expression",
    ),
    "tools of wrong type": (STAGE + 'tools = "Read" #!', "must be a list of texts"),
    "a rule among tools": (STAGE + 'tools = ["Read",\n "Bash(ls)"] #!', "Rules stand in `rules`"),
    "two tools in one": (STAGE + 'tools = ["Read,Glob"] #!', "can't be a tool's name"),
    "bad rule": (STAGE + 'rules = ["Edit(./**)",\n "rm -rf /"] #!', "not a permission rule"),
    "no such persona": ("[persona.careful]\n" + STAGE + 'persona = "carefull" #!', "Did you mean `careful`?"),
    "unknown key of a persona": ("[persona.a]\nprompt = 1 #!\n" + STAGE, "no key `prompt`"),
    "persona of wrong type": ("persona.a = 1 #!\n" + STAGE, "must be a table"),
    "unknown limit": (STAGE + "limits.turn = 3 #!", "Did you mean `turns`?"),
    "limit below nothing": (STAGE + "limits.turns = -3 #!", "must be from 0"),
    "limit that is not whole": (STAGE + "limits.retries = 1.5 #!", "must be a whole number"),
    "limit without end": (STAGE + "limits.stage_s = inf #!", "must be from 0"),
    "limit by truth": (STAGE + "limits.turns = true #!", "not true or false"),
    "no prompt file": ('[[stage]]\nname="x"\nprompt = "prompts/nope.md.j2" #!', "no prompt file"),
    "prompt outside": ('[[stage]]\nname="x"\nprompt = "../nope.md.j2" #!', "outside of the pipeline's"),
    "absolute prompt": ('[[stage]]\nname="x"\nprompt = "/etc/x.j2" #!', "outside of the pipeline's"),
    "file name as prompt": ('[[stage]]\nname="x"\nprompt = "prompts/x.md" #!', "looks like a file's name"),
    "template in one line": ('[[stage]]\nname="x"\nprompt = "{{ taks.title }}" #!', "Did you mean `task`?"),
    "preparation": (STAGE + 'preparation = "{{ x }}" #!', "no variable `x`"),
    "not TOML": (STAGE + "tools = [1 2] #!", "not TOML"),
    "a key twice": (STAGE + 'name = "x" #!', "not TOML"),
    "nested": (STAGE + "limits = " + "[" * 5000 + " #!", "nested more than"),
    "dotted": (STAGE + ".".join("a" * 5000) + " = 1 #!", "nested more than"),
    "a number of thousands of digits": ("a = " + "1" * 5000, "can't be read"),
    "a NUL": (STAGE + 'model = "a\\u0000" #!', "no text can hold"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_st3_a_fault_is_said_at_its_line_with_what_to_do(loaded: Write, name: str) -> None:
    text, words = FAULTS[name]
    found = loaded(text)
    assert found.pipeline is None
    fault = next(fault for fault in found.faults if fault.severity == "error")
    marked = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith("#!")] or [1]
    assert (fault.line, fault.file) == (marked[0], str(found.file))
    assert words in f"{fault.message} {fault.hint}"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('tools = ["Raed"]', "Did you mean `Read`?"),
        ('tools = ["default"]', "would leave it out"),
        ('tools = ["Read", "AskUserQuestion"]', "left out of the list"),
        ('rules = ["Write"]', "`Write(./**)`"),
    ],
)
def test_what_may_be_right_is_a_warning_and_the_pipeline_can_be_used(
    loaded: Write, line: str, words: str
) -> None:
    found = loaded(STAGE + line)
    (fault,) = found.faults
    assert (fault.severity, fault.line) == ("warning", 4)
    assert words in f"{fault.message} {fault.hint}"
    assert found.pipeline is not None
    assert "AskUserQuestion" not in (found.pipeline.stages[0].tools or ())


def test_all_faults_are_said_at_once_in_the_order_of_the_file(loaded: Write) -> None:
    found = loaded('tilte = 1\n[[stage]]\nname = 2\noutput = "x"\nprompt = "{{ y }}"\n')
    assert [fault.line for fault in found.faults] == [1, 3, 4, 5]


def test_a_file_of_nothing_but_faults_gives_a_bounded_list(loaded: Write) -> None:
    found = loaded("\n".join(f"k{number} = 1" for number in range(5000)))
    assert found.pipeline is None
    assert 20 < len(found.faults) <= 100


def test_faults_in_a_prompt_file_are_at_its_line(loaded: Write) -> None:
    found = loaded('[[stage]]\nname = "x"\nprompt = "prompts/a.md.j2"\n', a="one\ntwo {{ nope }}\n{% if %}\n")
    (fault,) = found.faults
    assert (fault.file, fault.line) == (str(found.file.parent / "prompts/a.md.j2"), 3)
    found = loaded('[[stage]]\nname = "x"\nprompt = "prompts/a.md.j2"\n', a="one\ntwo {{ nope }}\n")
    assert [fault.line for fault in found.faults] == [2]


@pytest.mark.parametrize(("opening", "line"), [('"""\n', 4), ('"""', 3), ("'''\n", 4)])
def test_faults_in_a_prompt_of_several_lines_are_at_their_line(
    loaded: Write, opening: str, line: int
) -> None:
    quotes = opening.strip()
    found = loaded(f'[[stage]]\nname = "x"\nprompt = {opening}{{{{ nope }}}}\nsecond\n{quotes}\n')
    assert [fault.line for fault in found.faults] == [line]


def test_a_byte_that_is_not_utf_8_is_named_with_its_place(loaded: Write) -> None:
    (fault,) = loaded('title = "x"\n# é '.encode() + b"\xff\n").faults
    assert (fault.line, fault.column) == (2, 5)
    assert "0xff" in fault.message


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(loaded: Write) -> None:
    found = loaded(b"\xef\xbb\xbf" + STAGE.replace("\n", "\r\n").encode())
    assert found.pipeline is not None


def test_files_that_are_too_large_are_not_read(loaded: Write) -> None:
    assert "larger than 256 KiB" in loaded("#" * 300_000).faults[0].message
    found = loaded('[[stage]]\nname = "x"\nprompt = "prompts/a.md.j2"\n', a="x" * 70_000)
    assert "larger than 64 KiB" in found.faults[0].message


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "mine.toml")
    assert "not an ordinary file" in load(tmp_path / "mine.toml", "user").faults[0].message
    assert "no file" in load(tmp_path / "nope.toml", "user").faults[0].message
    (tmp_path / "dir.toml").mkdir()
    assert load(tmp_path / "dir.toml", "user").pipeline is None


def test_a_prompt_that_is_a_link_out_of_the_directory_is_refused(loaded: Write, tmp_path: Path) -> None:
    (tmp_path / "secret.md.j2").write_text("secret")
    (tmp_path / "pipelines/prompts").mkdir(parents=True)
    (tmp_path / "pipelines/prompts/a.md.j2").symlink_to(tmp_path / "secret.md.j2")
    (tmp_path / "pipelines/prompts/b.md.j2").symlink_to(tmp_path / "pipelines/prompts/b.md.j2")
    for name in ("a", "b"):
        found = loaded(f'[[stage]]\nname = "x"\nprompt = "prompts/{name}.md.j2"\n')
        assert found.pipeline is None
        assert found.faults[0].line == 3


def test_a_pipeline_that_is_a_link_out_of_the_project_is_refused(tmp_path: Path, project: Path) -> None:
    (tmp_path / "outside.toml").write_text(STAGE)
    (project / "mine.toml").symlink_to(tmp_path / "outside.toml")
    assert "leads elsewhere" in load(project / "mine.toml", "project", within=project).faults[0].message
    assert load(project / "mine.toml", "user").pipeline is not None


def test_a_name_that_is_no_name(tmp_path: Path) -> None:
    for name in ("Not This.toml", b"\xff.toml".decode("utf-8", "surrogateescape")):
        (tmp_path / name).write_text(STAGE)
        found = load(tmp_path / name, "user")
        assert "can't be a pipeline's name" in found.faults[0].message
        found.faults[0].message.encode()
        found.faults[0].file.encode()


PIECES = st.sampled_from(
    ["[[stage]]", "[persona.a]", "name", "prompt", "gate", "schema", "tools", "limits", "=", "{", "}", "[",
     "]", ",", ".", '"', "'", '"""', "'''", "\n", " ", "#", "\\", "{{", "}}", "{%", "%}", "if", "for", "x",
     "1", "true", "2024-01-01", "inf", '"require_fields"', "type", '"prompts/a.md.j2"', "\x00", "é"]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=40).map(lambda p: "".join(p).encode())))
def test_loading_never_raises(loaded: Write, raw: bytes) -> None:
    found = loaded(raw)
    assert (found.pipeline is None) == any(fault.severity == "error" for fault in found.faults)


NAMES = st.sampled_from(["type", "min", "fields", "required", "properties", "a"])


def inline(table: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"


VALUES = st.recursive(
    st.sampled_from(
        ["1", "-1", "1.5", "nan", "true", "2024-01-01", '"x"', '"none"', '"{}"', "'{\"type\":1}'", '""']
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(NAMES, inner, max_size=3).map(inline),
    ),
    max_leaves=6,
)  # fmt: skip
KEYS = st.sampled_from(
    ["id", "name", "prompt", "input", "output", "schema", "gate", "tools", "permission", "rules", "persona",
     "preparation", "model", "session", "artifact", "limits", "description", "fix"]
)  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(KEYS, VALUES, max_size=5), st.sampled_from(["text", "options", "checklist", "structured"])
)
def test_any_value_of_any_key_is_taken_or_said_to_be_wrong(
    loaded: Write, stage: dict[str, str], output: str
) -> None:
    stage = {"name": '"One"', "prompt": '"Do it."', "output": f'"{output}"'} | stage
    found = loaded("[[stage]]\n" + "\n".join(f"{key} = {value}" for key, value in stage.items()))
    assert (found.pipeline is None) == any(fault.severity == "error" for fault in found.faults)
