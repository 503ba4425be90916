"""The language of prompt templates: Jinja2 without anything that could run, read, or not end.

A template is judged as a tree before any of it is compiled, and what is not named here is refused. What is
left can only be long: so reading a variable, turning a loop and every filter pay from one budget.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jinja2 import Environment, Template, TemplateError, TemplateSyntaxError, nodes

from promptside_daemon.pipelines.budget import (
    FILTERS,
    TESTS,
    Budget,
    Meter,
    SpentError,
    affordable,
    environment,
)
from promptside_daemon.toml_source import did_you_mean
from promptside_protocol.views import FaultView

MAX_SOURCE = 64 * 1024
MAX_NODES = 4_000
MAX_DEPTH = 60
MAX_LOOPS = 4
"""Loops within loops; Python itself ends at 20 nested blocks."""
MAX_FAULTS = 30

Known = Mapping[str, frozenset[str]]
"""Variables with the names of their parts; no parts: a text."""


class PromptError(Exception):
    """The template can't be used as it stands; its place counts from the template's first line."""

    def __init__(self, line: int, sentence: str, hint: str = "") -> None:
        super().__init__(f"line {line}: {sentence}")
        self.line = line
        self.sentence = sentence
        self.hint = hint


def check(source: str, known: Known) -> tuple[frozenset[str], list[PromptError]]:
    """The names that are used, and everything that can be said without rendering."""
    try:
        tree = _parse(environment(Budget()), source)
    except PromptError as fault:
        return frozenset(), [fault]
    return _judge(tree, known)


def render(source: str, values: Mapping[str, object], known: Known) -> str:
    """The text; raises PromptError. Every known variable must have a value."""
    metered = environment(Budget())
    tree = _parse(metered, source)
    _, faults = _judge(tree, known)
    if faults:
        raise faults[0]
    try:
        template = metered.from_string(Meter(metered).visit(tree))
    except (TemplateError, SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise PromptError(1, f"The template can't be compiled: {error}.") from error
    try:
        text = _text(template, values)
    except SpentError as error:
        raise PromptError(_line(error, template), f"{error}.", "Say less, or loop less.") from error
    except Exception as error:  # a filter or a comparison given the wrong kind of value can raise anything
        raise PromptError(_line(error, template), f"This can't be rendered: {error}.") from error
    # A lone surrogate (from "\ud800" in the template, or undecodable input) could not be sent.
    return text.encode("utf-8", "replace").decode()


# --- the short form of conditions -------------------------------------------------------------------

_TAG = re.compile(
    r"""
      \{\{-?[ \t]{0,9}(?:
          \#(?P<open>\w{1,20})(?P<of>[^{}\n]{0,200})
        | (?P<other>else)[ \t]{0,9}-?
        | /(?P<close>\w{1,20})[ \t]{0,9}-?
      )\}\}
    | (?P<comment>\{\#)
    | (?P<raw>\{%[-+]?\s{0,9}raw\s{0,9}[-+]?%\})
    """,
    re.VERBOSE,
)
"""Every repetition is bounded, so that no text takes more than one pass."""
_RAW_END = re.compile(r"\{%[-+]?\s{0,9}endraw\s{0,9}[-+]?%\}")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?")


def translate(source: str) -> str:
    """`{{#if x}}…{{else}}…{{/if}}` in Jinja's words, each on the line where it stood."""
    text: list[str] = []
    opened: list[int] = []
    done = 0
    while (tag := _TAG.search(source, done)) is not None:
        text.append(source[done : tag.start()])
        done = tag.end()
        if tag["comment"] or tag["raw"]:
            close = source.find("#}", done) if tag["comment"] else _end_of_raw(source, done)
            done = len(source) if close < 0 else close
            text.append(source[tag.start() : done])
        else:
            text.append(_in_jinja(tag, source.count("\n", 0, tag.start()) + 1, opened))
    if opened:
        raise PromptError(opened[-1], "`{{#if …}}` has no `{{/if}}`.")
    return "".join([*text, source[done:]])


def _in_jinja(tag: re.Match[str], line: int, opened: list[int]) -> str:
    if tag["other"]:
        if not opened:
            raise PromptError(line, "`{{else}}` stands outside of `{{#if …}}`.")
        return "{% else %}"
    if word := tag["close"]:
        if word != "if" or not opened:
            raise PromptError(line, f"`{{{{/{word}}}}}` closes nothing.")
        opened.pop()
        return "{% endif %}"
    if (word := tag["open"]) != "if":
        raise PromptError(line, f"`{{{{#{word}}}}}` is not known; only `{{{{#if …}}}}` is.")
    condition = tag["of"].strip().removesuffix("-").strip()
    if not _NAME.fullmatch(condition):
        raise PromptError(line, "`{{#if …}}` takes the name of one variable.", _JINJA)
    opened.append(line)
    return f"{{% if {condition} %}}"


def _end_of_raw(source: str, start: int) -> int:
    end = _RAW_END.search(source, start)
    return end.end() if end else -1


_JINJA = "For anything more, write `{% if … %}`."


# --- what a template may hold -----------------------------------------------------------------------

_ALLOWED: tuple[type[nodes.Node], ...] = (
    nodes.Template,
    nodes.TemplateData,
    nodes.Output,
    nodes.Name,
    nodes.Const,
    nodes.If,
    nodes.For,
    nodes.Assign,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Filter,
    nodes.Test,
    nodes.Keyword,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Neg,
    nodes.CondExpr,
    nodes.Concat,
    nodes.List,
    nodes.Tuple,
)
_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Include: "A prompt template can't include another file.",
    nodes.Import: "A prompt template can't import another file.",
    nodes.FromImport: "A prompt template can't import another file.",
    nodes.Extends: "A prompt template can't extend another file.",
    nodes.Call: "A prompt template can't call anything; there is no `range` either.",
    nodes.Macro: "A prompt template can't define macros.",
    nodes.CallBlock: "A prompt template can't define macros.",
    nodes.BinExpr: "A prompt template can't calculate. `~` joins texts.",
    nodes.Dict: "A prompt template can't make tables of its own.",
}
_LOOP = frozenset({"index", "index0", "revindex", "first", "last", "length"})


def _judge(tree: nodes.Template, known: Known) -> tuple[frozenset[str], list[PromptError]]:
    names = dict(known)
    if (fault := _measured(tree)) is not None:
        return frozenset(), [fault]
    for assigned in tree.find_all(nodes.Name):
        if assigned.ctx == "store":
            names.setdefault(assigned.name, frozenset())
    used: set[str] = set()
    faults: list[PromptError] = []
    stack: list[tuple[nodes.Node, nodes.Node, int]] = [(tree, tree, 1)]
    while stack and len(faults) < MAX_FAULTS:
        node, parent, line = stack.pop()
        line = node.lineno or line
        if isinstance(node, nodes.For):
            names.setdefault("loop", _LOOP)
        if isinstance(node, nodes.Name):
            used.add(node.name)
        if (fault := _refuse(node, parent, line, names)) is None:
            stack.extend((child, node, line) for child in reversed(list(node.iter_child_nodes())))
        else:
            faults.append(fault)
    return frozenset(used), faults


def _measured(tree: nodes.Template) -> PromptError | None:
    """Whether the tree is small enough to be walked by anything that recurses, Jinja's compiler too."""
    count, line = 0, 1
    stack: list[tuple[nodes.Node, int, int]] = [(tree, 0, 0)]
    while stack:
        node, depth, loops = stack.pop()
        count += 1
        loops += isinstance(node, nodes.For)
        line = node.lineno or line
        if depth > MAX_DEPTH or loops > MAX_LOOPS:
            return PromptError(line, "The template is nested too deep.")
        if count > MAX_NODES:
            return PromptError(1, "The template has too many parts.")
        stack.extend((child, depth + 1, loops) for child in node.iter_child_nodes())
    return None


def _refuse(node: nodes.Node, parent: nodes.Node, line: int, names: Known) -> PromptError | None:
    if not isinstance(node, _ALLOWED):
        for kind, sentence in _REFUSED.items():
            if isinstance(node, kind):
                return PromptError(line, sentence)
        return PromptError(line, f"A prompt template can't hold {type(node).__name__}.")
    if isinstance(node, nodes.Name):
        return _refuse_name(node, parent, line, names)
    if isinstance(node, nodes.Getattr) or (isinstance(node, nodes.Getitem) and _word(node.arg) is not None):
        part = node.attr if isinstance(node, nodes.Getattr) else _word(node.arg)
        owner = node.node.name if isinstance(node.node, nodes.Name) else ""
        if owner and owner not in names:
            return None  # the name itself is the fault
        parts = names.get(owner, frozenset())
        if part not in parts:
            of = f"`{owner}`" if owner else "this"
            return PromptError(
                line, f"There is no `{part}` in {of}.", did_you_mean(str(part), tuple(sorted(parts)))
            )
    elif isinstance(node, nodes.Getitem):
        if not isinstance(node.arg, nodes.Const | nodes.Slice | nodes.Neg):
            return PromptError(line, "Only a number can stand in these brackets.")
    elif isinstance(node, nodes.Filter):
        if node.node is None or node.dyn_args is not None or node.dyn_kwargs is not None:
            return PromptError(line, "A filter must be written behind `|`.")
        if node.name not in FILTERS:
            return PromptError(
                line, f"There is no filter `{node.name}`.", did_you_mean(node.name, tuple(FILTERS))
            )
    elif isinstance(node, nodes.Test):
        if node.name not in TESTS:
            return PromptError(line, f"There is no test `{node.name}`.", did_you_mean(node.name, TESTS))
    elif isinstance(node, nodes.For):
        if node.recursive:
            return PromptError(line, "A prompt template can't loop over itself.")
    elif isinstance(node, nodes.Assign):
        if not isinstance(node.target, nodes.Name):
            return PromptError(line, "`set` takes one name.")
    elif isinstance(node, nodes.List | nodes.Tuple):
        wanted = nodes.Name if isinstance(node, nodes.Tuple) and node.ctx == "store" else nodes.Const
        if any(not isinstance(item, wanted) for item in node.items):
            return PromptError(line, "A list can hold plain words and numbers only.")
    return None


def _refuse_name(node: nodes.Name, parent: nodes.Node, line: int, names: Known) -> PromptError | None:
    if node.name not in names:
        return PromptError(
            line,
            f"There is no variable `{node.name}`.",
            did_you_mean(node.name, tuple(sorted(names))),
        )
    parts = names[node.name]
    if node.ctx == "load" and parts and not isinstance(parent, nodes.Getattr | nodes.Getitem):
        return PromptError(
            line,
            f"`{node.name}` is not a text; name a part of it.",
            did_you_mean("", tuple(f"{node.name}.{part}" for part in sorted(parts))),
        )
    return None


def _word(argument: nodes.Expr) -> str | None:
    value = argument.value if isinstance(argument, nodes.Const) else None
    return value if isinstance(value, str) else None


def _parse(syntax: Environment, source: str) -> nodes.Template:
    if len(source) > MAX_SOURCE:
        raise PromptError(1, f"The template is longer than {MAX_SOURCE:,} characters.")
    try:
        return syntax.parse(translate(source))
    except TemplateSyntaxError as error:
        message = (error.message or "").rstrip(".")
        raise PromptError(error.lineno, f"The template can't be read: {message}.") from error
    except RecursionError as error:
        raise PromptError(1, "The template is nested too deep.") from error
    except (ValueError, SyntaxError, OverflowError, MemoryError) as error:
        raise PromptError(1, "A number in the template can't be read.") from error


def _text(template: Template, values: Mapping[str, object]) -> str:
    pieces: list[str] = []
    size = 0
    for piece in template.root_render_func(template.new_context(dict(values))):
        size += len(piece)
        affordable(size)
        pieces.append(piece)
    return "".join(pieces)


def _line(error: BaseException, template: Template) -> int:
    """Where in the template an error was raised, by the innermost frame of its compiled code."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line


def as_fault(fault: PromptError, file: str, first_line: int = 1) -> FaultView:
    """A template's fault, in the file that holds the template from `first_line` on."""
    return FaultView(
        file=file, line=fault.line + first_line - 1, column=1, message=fault.sentence, hint=fault.hint
    )
