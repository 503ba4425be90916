"""One call of the terminal: verb, words, module, exit code; every failure is said in one place."""

from __future__ import annotations

from importlib import import_module

from promptside_cli import help as help_text
from promptside_cli.arguments import Arguments, Verb, common_first, near_miss, read
from promptside_cli.exits import FAILED, USAGE, Stopped, UsageError, exit_for
from promptside_cli.terminal import Terminal
from promptside_cli.verbs import LATER, VERBS


def call(words: list[str]) -> int:
    """Run one command line; returns its exit code."""
    front, rest = common_first(words)
    wants_json = "--json" in words
    try:
        if not rest and ("--help" in front or "-h" in front):
            print(help_text.overview())
            return 0
        verb, left = find(rest)
        arguments = read(verb, front + left)
    except UsageError as error:
        terminal = Terminal.open(json=wants_json)
        terminal.fail("usage", error.message, error.hint, usage=error.usage)
        return USAGE
    if arguments.given("--help"):
        print(help_text.of(verb))
        return 0
    return _perform(verb, arguments)


def find(words: list[str]) -> tuple[Verb, list[str]]:
    """The verb at the head of the words, and the rest; raises UsageError with what may have been meant."""
    if not words:
        raise UsageError("What is to be done?", help_text.USAGE, "promptside --help")
    pair = " ".join(words[:2])
    for name, length in ((pair, 2), (words[0], 1)):
        if name in LATER:
            raise UsageError(f"promptside {name} comes with a later version.")
        if name in VERBS:
            return VERBS[name], words[length:]
    family = [verb for name, verb in VERBS.items() if name.startswith(f"{words[0]} ")]
    if family:
        usage = "\n       ".join(verb.usage for verb in family)
        if len(words) == 1 or words[1] in ("--help", "-h"):
            raise UsageError(f"promptside {words[0]} does what?", usage)
        meant = near_miss(pair, tuple(verb.name for verb in family))
        message = f"“{pair}” is no verb."
    else:
        usage = help_text.USAGE
        meant = near_miss(words[0], (*VERBS, *(name.partition(" ")[0] for name in VERBS)))
        message = f"“{words[0]}” is no verb."
    raise UsageError(message, usage, f"Did you mean “promptside {meant}”?" if meant else "")


def _perform(verb: Verb, arguments: Arguments) -> int:
    module, _, function = verb.module.partition(":")
    run = getattr(import_module(module), function)
    try:
        return int(run(arguments))
    except UsageError as error:
        terminal = Terminal.of(arguments)
        terminal.fail("usage", error.message, error.hint, usage=error.usage or verb.usage)
        return USAGE
    except Stopped as error:
        Terminal.of(arguments).fail(error.code, error.message, error.hint)
        return error.exit_code
    except Exception as error:
        refusal = getattr(error, "refusal", None)
        if refusal is None:
            raise
        Terminal.of(arguments).fail(
            refusal.code, refusal.message, refusal.hint, difference=refusal.difference
        )
        return exit_for(error) or FAILED
