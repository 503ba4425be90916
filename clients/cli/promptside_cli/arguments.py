"""Reading the words of a verb: one that is no option of it is text, also when it begins with `-`.

That rule is why this is not argparse, which takes every such word for an option it doesn't know.
"""

from __future__ import annotations

from typing import NamedTuple

from promptside_cli.exits import UsageError


class Option(NamedTuple):
    """An option of a verb; without a `value` it is a switch."""

    name: str
    value: str = ""
    short: str = ""
    many: bool = False
    list: bool = False
    """Takes further words too: `--option A B`."""
    choices: tuple[str, ...] = ()


class Verb(NamedTuple):
    """One line of the terminal's contract."""

    name: str
    """`task new`."""
    module: str
    """`promptside_cli.task:new`."""
    usage: str
    summary: str
    example: str
    takes: tuple[str, ...] = ()
    """Names of the words it takes: `TASK` (a number or `@`, which is what is taken when it is missing),
    `NAME` required, `PATH?` optional, `TEXT*` all that follow, joined."""
    options: tuple[Option, ...] = ()
    extra: str = ""


COMMON = (
    Option("--project", "PATH"),
    Option("--json"),
    Option("--color", "WHEN", choices=("auto", "always", "never")),
    Option("--help", short="-h"),
)
"""Options of every verb; they may also stand before it."""


class Arguments:
    """What was given to a verb."""

    def __init__(self, verb: Verb, words: dict[str, str], options: dict[str, list[str]]) -> None:
        self.verb = verb
        self._words = words
        self._options = options

    @property
    def task(self) -> int:
        """The task's number; 0 is `@`."""
        word = self._words.get("TASK", "@")
        return 0 if word == "@" else int(word.removeprefix("#"))

    def word(self, name: str, default: str = "") -> str:
        """A word by its name in `takes`, without its mark."""
        return self._words.get(name, default)

    def given(self, option: str) -> bool:
        """Whether an option or switch stood there."""
        return option in self._options

    def one(self, option: str, default: str = "") -> str:
        """The value of an option."""
        return self._options[option][0] if option in self._options else default

    def all(self, option: str) -> tuple[str, ...]:
        """The values of an option that may be repeated."""
        return tuple(self._options.get(option, ()))

    def number(self, option: str, default: int = 0) -> int:
        """The value of an option that is a number."""
        word = self.one(option)
        if not word:
            return default
        if not word.isascii() or not word.isdigit():
            raise UsageError(f"{option} takes a number, not “{word}”.", self.verb.usage)
        return int(word)

    @property
    def json(self) -> bool:
        """Whether stdout is data."""
        return self.given("--json")


def is_task(word: str) -> bool:
    """Whether a word names a task: `12`, `#12`, `@`."""
    digits = word.removeprefix("#")
    return word == "@" or (digits.isascii() and digits.isdigit())


def read(verb: Verb, words: list[str]) -> Arguments:
    """The words of one call, sorted; raises UsageError with the verb's usage line."""
    known = {
        name: option for option in (*verb.options, *COMMON) for name in (option.name, option.short) if name
    }
    options: dict[str, list[str]] = {}
    texts: list[str] = []
    open_list: Option | None = None
    rest = iter(range(len(words)))
    for index in rest:
        word = words[index]
        if word == "--" and index + 1 < len(words):
            texts += words[index + 1 :]
            break
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = known.get(name)
        if option is None:
            texts.append(word)
            continue
        if not option.value:
            if equals:
                raise UsageError(f"{option.name} takes no value.", verb.usage)
            options[option.name] = [""]
            continue
        if not equals:
            following = next(rest, None)
            if following is None:
                raise UsageError(f"{name} needs a value: {name} {option.value}.", verb.usage)
            value = words[following]
        if option.choices and value not in option.choices:
            hint = near_miss(value, option.choices)
            message = f"{name} takes {_either(option.choices)}, not “{value}”."
            raise UsageError(message, verb.usage, f"Did you mean {name} {hint}?" if hint else "")
        if option.name in options and not option.many:
            raise UsageError(f"{name} was given twice.", verb.usage)
        options.setdefault(option.name, []).append(value)
        open_list = option if option.list else open_list
    if "--help" in options:
        return Arguments(verb, {}, options)
    named, surplus = _sort(verb, texts)
    if surplus and open_list is not None:
        options[open_list.name] += surplus
        surplus = []
    if surplus:
        raise _too_many(verb, texts, surplus)
    return Arguments(verb, named, options)


def common_first(words: list[str]) -> tuple[list[str], list[str]]:
    """The common options in front of the verb, and the rest."""
    front: list[str] = []
    rest = list(words)
    while rest:
        name = rest[0].partition("=")[0]
        option = next((o for o in COMMON if name in (o.name, o.short)), None)
        if option is None:
            break
        front.append(rest.pop(0))
        if option.value and "=" not in front[-1] and rest:
            front.append(rest.pop(0))
    return front, rest


def near_miss(word: str, known: tuple[str, ...]) -> str:
    """The known word that was probably meant, or nothing."""
    from difflib import get_close_matches  # noqa: PLC0415  # only where something was mistyped

    return next(iter(get_close_matches(word, known, n=1, cutoff=0.6)), "")


def _sort(verb: Verb, texts: list[str]) -> tuple[dict[str, str], list[str]]:
    named: dict[str, str] = {}
    left = list(texts)
    for slot in verb.takes:
        name = slot.rstrip("?*")
        if name == "TASK":
            if left and is_task(left[0]):
                named[name] = left.pop(0)
        elif slot.endswith("*"):
            if not left:
                raise UsageError(f"{name} is missing.", verb.usage)
            named[name] = " ".join(left)
            left = []
        elif left:
            named[name] = left.pop(0)
        elif not slot.endswith("?"):
            raise UsageError(f"{name} is missing.", verb.usage)
    return named, left


def _too_many(verb: Verb, texts: list[str], surplus: list[str]) -> UsageError:
    names = tuple(option.name for option in (*verb.options, *COMMON))
    for word in texts:
        meant = near_miss(word.partition("=")[0], names) if word.startswith("-") else ""
        if meant:
            return UsageError(f"“{word}” is no option of {verb.name}.", verb.usage, f"Did you mean {meant}?")
    if verb.takes == ("TASK",) and not is_task(texts[0]):
        return UsageError(f"“{texts[0]}” is no task: give its number, or @.", verb.usage)
    hint = "Put a text of several words in quotes." if verb.takes[-1:] not in ((), ("TASK",)) else ""
    return UsageError(f"“{surplus[0]}” is one word too many for {verb.name}.", verb.usage, hint)


def _either(words: tuple[str, ...]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]
