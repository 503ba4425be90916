"""What a prompt template may do (ST-4); a hostile one is refused at its line, and never hangs or reads."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptside_daemon.pipelines.prompt import TaskFacts, Variables, check, cut, render
from promptside_daemon.pipelines.template import PromptError

FULL = Variables(
    task_description="Add a login.",
    previous_output="Use sessions.",
    user_input="small",
    user_decision="A",
    task=TaskFacts(id=3, title="Login", files=("a.py", "b.py"), criteria=("it works",)),
)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{task_description}}", "Add a login."),
        ("{{ task.title }} {{ task.id }} {{ task['title'] }}", "Login 3 Login"),
        ("{% for file in task.files %}{{ loop.index }}:{{ file }} {% endfor %}", "1:a.py 2:b.py"),
        ("{% for file in task.files if file != 'a.py' %}{{ file }}{% else %}none{% endfor %}", "b.py"),
        ("{{ task.files | join(', ') | upper }} {{ task.files | length }}", "A.PY, B.PY 2"),
        ("{% if task.files %}{{ task.files[0] }} {{ task.files[-1:] | first }}{% endif %}", "a.py b.py"),
        ("{{ feedback | default('none', true) }} {{ 'a' ~ task.id }}", "none a3"),
        ("{{ 'yes' if 'login' in task_description else 'no' }}", "yes"),
        ("{% if task.type in ['feature', ''] and not failure %}x{% endif %}", "x"),
        ("{% set name = task.title | lower %}{{ name }}{# a remark #}", "login"),
        ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
        ("{{ 'a\nb' | indent(2, true) }}", "a\n  b"),
        ("{{ user_input | replace('small', 'tiny') | capitalize }}", "Tiny"),
        ("{% raw %}{{ x }} {{#if y}}{% endraw %}", "{{ x }} {{#if y}}"),
        ("{# {{#if x}} #}ok", "ok"),
    ],
)
def test_st4_what_a_template_can_say(source: str, text: str) -> None:
    assert check(source) == []
    # A variable that a template has no place for follows behind; here only the template is looked at.
    given_ = Variables(
        task_description=FULL.task_description, task=FULL.task,
        user_input=FULL.user_input if "user_input" in source else "",
    )  # fmt: skip
    assert render(source, given_).strip() == text


SHORT = """Task: {{task_description}}

{{#if user_input}}
More:
{{user_input}}
{{else}}
Nothing more.
{{/if}}
{{#if task.files}}files{{/if}}
End.
"""
LONG = (
    SHORT.replace("{{#if user_input}}", "{% if user_input %}")
    .replace("{{#if task.files}}", "{% if task.files %}")
    .replace("{{else}}", "{% else %}")
    .replace("{{/if}}", "{% endif %}")
)


@pytest.mark.parametrize("variables", [FULL, Variables(), Variables(user_input="  \n ")])
def test_st4_the_short_condition_is_the_long_one(variables: Variables) -> None:
    assert render(SHORT, variables) == render(LONG, variables)


def test_st4_the_sources_own_example() -> None:
    source = (
        "You are a senior software engineer.\n\nTask: {{task_description}}\n\n"
        "{{#if user_input}}\nAdditional context from the developer:\n{{user_input}}\n{{/if}}\n\nProvide\n"
    )
    assert render(source, Variables(task_description="T")) == (
        "You are a senior software engineer.\n\nTask: T\n\n\nProvide\n"
    )
    assert "Additional context from the developer:\nI\n" in render(source, Variables(user_input="I"))


def test_what_a_person_wrote_is_never_a_template() -> None:
    told = "{{ task.title }} {% include 'x' %} {{#if user_input}}"
    assert render("{{ task_description }}", Variables(task_description=told)) == told + "\n"


def test_feedback_failure_and_input_are_never_lost() -> None:
    spoken = Variables(user_input="IN", feedback="BACK", failure="FAIL")
    text = render("Do it.", spoken)
    assert [word in text for word in ("IN", "BACK", "FAIL")] == [True, True, True]
    text = render("{{ user_input }}{% if failure %}{{ failure }}{% endif %}", spoken)
    assert (text.count("IN"), text.count("FAIL"), text.count("BACK")) == (1, 1, 1)


BOMB = "{% for a in previous_output %}" * 4 + "{% endfor %}" * 4
HOSTILE = [
    "{{ ''.__class__ }}",
    "{{ ''['__class__'] }}",
    "{{ task_description.__init__.__globals__ }}",
    "{{ task.__class__.__mro__ }}",
    "{{ task|attr('__class__') }}",
    "{{ self.__init__ }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ lipsum() }}",
    "{{ joiner() }}",
    "{% include '/etc/passwd' %}",
    "{% import 'x' as y %}",
    "{% from 'x' import y %}",
    "{% extends 'x' %}",
    "{% block a %}{% endblock %}",
    "{{ range(10**12)|list }}",
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{{ 'a'*10**10 }}",
    "{{ 10**10**10 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ [0] * 1000000000 }}",
    "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
    "{% call(x) a() %}{% endcall %}",
    "{% for a in task.files recursive %}{{ loop(task.files) }}{% endfor %}",
    BOMB,
    "{% set x = previous_output %}" + "{% set x = x ~ x %}" * 60 + "{{ x }}",
    "{% set x = 'aaaaaaaaaaaaaaaa' %}" + "{% set x = x|replace('a', x) %}" * 9 + "{{ x }}",
    "{{ previous_output|replace('', previous_output) }}",
    "{{ previous_output|replace('x', previous_output) }}",
    "{{ previous_output|join(previous_output) }}",
    "{{ previous_output|indent(1000000000) }}",
    "{{ 'a'|center(1000000000) }}",
    "{% set x = [1] %}" + "{% set x = [x, x] %}" * 60 + "{{ x }}",
    "{% for a in previous_output %}{{ previous_output }}{% endfor %}",
    "{% for a in previous_output %}{% if 'b' in previous_output %}{% endif %}{% endfor %}",
    "{{ previous_output" + "|upper" * 55 + "}}",
    "{% set ns = namespace(x=1) %}{% set ns.x = 2 %}",
    "{% filter upper %}x{% endfilter %}",
    "{{" + "(" * 30000,
    "{{ a" + ".b" * 30000 + " }}",
    "{% if x %}" * 5000,
    "{{ " + "not " * 15000 + "x }}",
    "{{ " + "1" * 5000 + " }}",
    "{#" * 30000,
    "{{#if" * 10000,
    "{{#if x" + " " * 60000,
    "{% raw %}" * 7000,
    "{{ task_description }}" * 3000,
    "x" * 70000,
]


@pytest.mark.parametrize("source", HOSTILE, ids=lambda source: source[:40])
def test_a_hostile_template_is_refused_with_a_sentence_at_its_line(source: str) -> None:
    large = Variables(previous_output="x" * 1_000_000, task=FULL.task)
    with pytest.raises(PromptError) as refused:
        render("first line\n" + source, large)
    assert refused.value.sentence.endswith(".")
    assert refused.value.line == 2 or len(source) > 1000
    assert refused.value.__cause__ is None or not isinstance(refused.value.__cause__, MemoryError)


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("a\n{{ taks.title }}", 2, "Did you mean `task`?"),
        ("a\n\n{{ task.titel }}", 3, "Did you mean `title`?"),
        ("{{ task }}", 1, "task.title"),
        ("{{ task_description.title }}", 1, "no `title` in `task_description`"),
        ("a\n{{ task.title|uper }}", 2, "Did you mean `upper`?"),
        ("a\n{% if task.title is odd %}{% endif %}", 2, "no test `odd`"),
        ("a\n{% if task.title %}\nb", 3, "can't be read"),
        ("a\n{{#if user_input}}\nb", 2, "has no `{{/if}}`"),
        ("a\n{{/if}}", 2, "closes nothing"),
        ("a\n{{else}}", 2, "outside of"),
        ("a\n{{#each x}}{{/each}}", 2, "only `{{#if …}}` is"),
        ("a\n{{#if a and b}}{{/if}}", 2, "{% if … %}"),
        ("a\n{{#if nope}}{{/if}}", 2, "no variable `nope`"),
        ("a\nb\n{{ task.files[0] }}", 3, "no element 0"),
        ("a\n{{ task.id|join(1, 2, 3) }}", 2, "can't be rendered"),
        ("a\n{{ task.id + 1 }}", 2, "can't calculate"),
        ("a\n{% for x in task.id %}{% endfor %}", 2, "can't be rendered"),
        (" \n ", 1, "prompt is empty"),
    ],
)
def test_a_mistake_is_named_with_its_line(source: str, line: int, words: str) -> None:
    fault = check(source, "x.md.j2", first_line=10)[0]
    assert (fault.file, fault.line) == ("x.md.j2", line + 9)
    assert words in f"{fault.message} {fault.hint}"


def test_all_mistakes_are_named() -> None:
    faults = check("{{ a }}\n{{ b }}\n{% if c %}{{ d() }}{% endif %}")
    assert [fault.line for fault in faults] == [1, 2, 3, 3]


def test_half_a_surrogate_can_be_sent() -> None:
    render("{{ '\\ud800' }}{{ task_description }}", Variables(task_description="\ud800")).encode()


def test_a_description_of_a_megabyte_is_rendered() -> None:
    assert len(render("{{ task_description }}", Variables(task_description="é" * 1_000_000))) == 1_000_001


PIECES = st.sampled_from(
    ["{{", "}}", "{%", "%}", "{#", "#}", "{{#if ", "{{/if}}", "{{else}}", "-", "if ", "for ", "in ", "set ",
     "endif ", "endfor ", "else ", "task", ".title", "user_input", "loop", ".index", "|upper", "|join('x')",
     "[0]", "['a']", "(", ")", "[", "]", ",", "'", '"', "=", "==", "~", " is defined", "not ", "1", "1e9",
     "\n", " ", "a", "raw ", "\\"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=25).map("".join)))
def test_a_template_that_passes_the_check_renders_or_says_why_not(source: str) -> None:
    if not check(source):
        with contextlib.suppress(PromptError):  # a branch that the check did not enter; nothing else escapes
            render(source, FULL)


def test_ga7_a_failure_is_cut_at_a_line() -> None:
    lines = [f"line {number} {'x' * (number % 50)}" for number in range(1000)]
    short = cut("\n".join(lines))
    assert 3_500 < len(short) <= 4_000
    kept = short.split("\n")
    assert kept[0] == lines[0]
    assert kept[-1] == lines[-1]
    marks = [line for line in kept if line not in lines]
    assert marks == [f"[… {1000 - len(kept) + 1} lines left out …]"]


@given(st.text(max_size=400), st.integers(60, 120))
def test_ga7_what_is_cut_is_never_too_long_and_what_fits_is_left_alone(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short) <= limit
    assert len(text) > limit or short == text
    assert short or not text.strip()
