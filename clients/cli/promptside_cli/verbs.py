"""The table of verbs: the terminal's contract at a glance. A verb's module is imported when it is called."""

from __future__ import annotations

from promptside_cli.arguments import Option, Verb

_TASK = ("TASK",)
_ON_ASK = Option("--on-ask", "wait|deny", choices=("wait", "deny"))
_STATES = ("draft", "pending", "ready", "taken", "paused", "expired", "completed", "failed", "archived")
_WORK_TYPES = ("documentation", "coding", "operations")
_KINDS = ("feature", "bug_fix", "refactor", "chore", "docs", "hotfix")
_ANYWAY = Option("--anyway")
"""Over files that an editor holds unsaved."""
_ATTEMPT = (Option("--stage", "STAGE"), Option("--attempt", "N"))

VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(
            "demo", "promptside_cli.demo:main", "promptside demo [--fast]",
            "rehearse a pipeline on a scratch repository: no model, no key, nothing left behind",
            "promptside demo --fast",
            options=(Option("--fast"),),
        ),
        Verb(
            "task new", "promptside_cli.task:new",
            "promptside task new TITLE [--description T|--description-file F] [--pipeline P] [--type T]"
            " [--work-type W] [--priority N|high|medium|low] [--criterion T]... [--file F]... [--draft]",
            "write a task down; nothing is started", 'promptside task new "Add login" --priority high',
            takes=("TITLE",),
            options=(
                Option("--description", "TEXT"), Option("--description-file", "FILE"),
                Option("--pipeline", "NAME"),
                Option("--type", "TYPE", choices=_KINDS), Option("--work-type", "TYPE", choices=_WORK_TYPES),
                Option("--priority", "N|high|medium|low"), Option("--criterion", "TEXT", many=True),
                Option("--file", "FILE", many=True), Option("--draft"), Option("--agent", "AGENT"),
            ),
        ),
        Verb(
            "task list", "promptside_cli.task:list_tasks",
            "promptside task list [--state S] [--work-type W] [--all-projects] [--limit N] [--offset N]",
            "all tasks, what waits for you first", "promptside task list --state ready",
            options=(
                Option("--state", "STATE", choices=_STATES),
                Option("--work-type", "TYPE", choices=_WORK_TYPES),
                Option("--all-projects"), Option("--limit", "N"), Option("--offset", "N"),
            ),
        ),
        Verb(
            "task show", "promptside_cli.task:show", "promptside task show [TASK]",
            "one task: its stages, what waits, what was decided", "promptside task show 12", takes=_TASK,
        ),
        Verb(
            "task ready", "promptside_cli.orders:ready", "promptside task ready [TASK]",
            "a draft may be run", "promptside task ready 12", takes=_TASK,
        ),
        Verb(
            "task abandon", "promptside_cli.orders:abandon", "promptside task abandon [TASK]",
            "put a task away undone; branch and files stay", "promptside task abandon 12", takes=_TASK,
        ),
        Verb(
            "task archive", "promptside_cli.orders:archive", "promptside task archive [TASK]",
            "put a finished task away", "promptside task archive 12", takes=_TASK,
        ),
        Verb(
            "run", "promptside_cli.run:run",
            "promptside run [TASK] [--input T] [--stage] [--detach] [--on-ask wait|deny] [--anyway]",
            "go on until something waits, fails or is done", "promptside run 12",
            takes=_TASK,
            options=(Option("--input", "TEXT"), Option("--stage"), Option("--detach"), _ON_ASK, _ANYWAY),
        ),
        Verb(
            "next", "promptside_cli.open:next_waiting", "promptside next",
            "open what waits for you", "promptside next",
        ),
        Verb(
            "open", "promptside_cli.open:open_document", "promptside open [TASK]",
            "edit the task's document; what you write becomes the draft", "promptside open 12", takes=_TASK,
        ),
        Verb(
            "approve", "promptside_cli.approve:approve",
            "promptside approve [TASK] [--select ID]... [--check ID[=NOTE]|all]... [--field K=V]..."
            " [--note T] [--sign-off] [--shown HASH] [--anyway]",
            "approve what waits at the gate; the next stage starts", "promptside approve 12 --select A",
            takes=_TASK,
            options=(
                Option("--select", "ID", many=True), Option("--check", "ID[=NOTE]", many=True),
                Option("--field", "K=V", many=True), Option("--note", "TEXT"), Option("--sign-off"),
                Option("--shown", "HASH"), _ANYWAY,
            ),
        ),
        Verb(
            "take-back", "promptside_cli.orders:take_back", "promptside take-back [TASK]",
            "take the last approval back; the gate waits again", "promptside take-back 12", takes=_TASK,
        ),
        Verb(
            "redo", "promptside_cli.orders:redo",
            "promptside redo [TASK] [--feedback T|-m T] [--fresh] [--anyway]",
            "do the stage again, with what you have to say", 'promptside redo 12 -m "no third-party library"',
            takes=_TASK,
            options=(Option("--feedback", "TEXT", short="-m"), Option("--fresh"), _ANYWAY),
        ),
        Verb(
            "answer", "promptside_cli.answer:answer",
            "promptside answer [TASK] DECISION (--option O... | --text T | --file F... | --recommended)",
            "answer a question, or a permission the agent asks for", "promptside answer 12 Q1 --option A",
            takes=("TASK", "DECISION"),
            options=(
                Option("--option", "ID", many=True, list=True), Option("--text", "TEXT"),
                Option("--file", "FILE", many=True, list=True), Option("--recommended"),
            ),
        ),
        Verb(
            "decision list", "promptside_cli.answer:list_decisions", "promptside decision list [TASK]",
            "every question of a task, with its answer", "promptside decision list 12", takes=_TASK,
        ),
        Verb(
            "back", "promptside_cli.orders:back", "promptside back [TASK] STAGE [--reason T] [--anyway]",
            "go back to an earlier stage", 'promptside back 12 planning --reason "the table is not needed"',
            takes=("TASK", "STAGE"), options=(Option("--reason", "TEXT"), _ANYWAY),
        ),
        Verb(
            "skip", "promptside_cli.orders:skip", "promptside skip [TASK] [--reason T] [--anyway]",
            "leave the current stage out", 'promptside skip 12 --reason "documentation only"',
            takes=_TASK, options=(Option("--reason", "TEXT"), _ANYWAY),
        ),
        Verb(
            "retry", "promptside_cli.orders:retry", "promptside retry [TASK] [--anyway]",
            "try the failed stage again", "promptside retry 12", takes=_TASK, options=(_ANYWAY,),
        ),
        Verb(
            "pause", "promptside_cli.orders:pause", "promptside pause [TASK]",
            "end the process, keep the session", "promptside pause 12", takes=_TASK,
        ),
        Verb(
            "resume", "promptside_cli.orders:resume", "promptside resume [TASK] [--anyway]",
            "go on where it was paused", "promptside resume 12", takes=_TASK, options=(_ANYWAY,),
        ),
        Verb(
            "take-over", "promptside_cli.takeover:take_over", "promptside take-over [TASK]",
            "go on with the agent's conversation yourself, in this terminal", "promptside take-over 12",
            takes=_TASK,
        ),
        Verb(
            "give-back", "promptside_cli.takeover:give_back", "promptside give-back [TASK]",
            "hand a task back whose terminal was killed", "promptside give-back 12", takes=_TASK,
        ),
        Verb(
            "stop", "promptside_cli.orders:stop", "promptside stop [TASK]",
            "stop the running stage; no retry follows", "promptside stop 12", takes=_TASK,
        ),
        Verb(
            "say", "promptside_cli.orders:say", "promptside say [TASK] TEXT [--attach FILE]...",
            "interrupt the running agent with your words", 'promptside say 12 "use the existing queue"',
            takes=("TASK", "TEXT*"), options=(Option("--attach", "FILE", many=True),),
        ),
        Verb(
            "diff", "promptside_cli.diff:diff", "promptside diff [TASK] [--stage S] [--attempt N]",
            "what an attempt changed", "promptside diff 12", takes=_TASK, options=_ATTEMPT,
        ),
        Verb(
            "undo", "promptside_cli.diff:undo", "promptside undo [TASK] [--stage S] [--attempt N] [--files]",
            "take back what an attempt changed", "promptside undo 12", takes=_TASK,
            options=(*_ATTEMPT, Option("--files"), Option("--conversation"), Option("--both")),
        ),
        Verb(
            "log", "promptside_cli.log:log",
            "promptside log [TASK] [--stage S] [--attempt N] [--follow] [--raw] [--grep RE] [--export DIR]",
            "what the agent wrote and did", "promptside log 12 --stage research --follow", takes=_TASK,
            options=(
                *_ATTEMPT, Option("--follow"), Option("--raw"), Option("--grep", "RE"),
                Option("--export", "DIR"),
            ),
        ),
        Verb(
            "watch", "promptside_cli.watch:watch", "promptside watch [TASK] [--events]",
            "the tasks, or one task, live; q leaves", "promptside watch", takes=_TASK,
            options=(Option("--events"),),
        ),
        Verb(
            "trust", "promptside_cli.trust:trust", "promptside trust [PATH] [--revoke] [--show]",
            "let this project's own pipelines, prompts, settings and commands run", "promptside trust --show",
            takes=("PATH?",), options=(Option("--revoke"), Option("--show")),
        ),
        Verb(
            "rules", "promptside_cli.rules:list_rules", "promptside rules [list]",
            "permissions given with “always”", "promptside rules",
        ),
        Verb(
            "rules list", "promptside_cli.rules:list_rules", "promptside rules [list]",
            "permissions given with “always”", "promptside rules list",
        ),
        Verb(
            "rules remove", "promptside_cli.rules:remove", "promptside rules remove ID",
            "take such a permission back", "promptside rules remove 3", takes=("ID",),
        ),
        Verb(
            "project add", "promptside_cli.project:add", "promptside project add [PATH] [--name NAME]",
            "make a directory a project", "promptside project add .", takes=("PATH?",),
            options=(Option("--name", "NAME"),),
        ),
        Verb(
            "project list", "promptside_cli.project:list_projects", "promptside project list",
            "all projects", "promptside project list",
        ),
        Verb(
            "project remove", "promptside_cli.project:remove", "promptside project remove [PATH]",
            "take a project off the list; its files stay", "promptside project remove .", takes=("PATH?",),
        ),
        Verb(
            "project rename", "promptside_cli.project:rename", "promptside project rename NAME",
            "give the project another name", "promptside project rename shop", takes=("NAME",),
        ),
        Verb(
            "pipeline list", "promptside_cli.pipeline:list_pipelines", "promptside pipeline list",
            "the pipelines that can be used here", "promptside pipeline list",
        ),
        Verb(
            "pipeline show", "promptside_cli.pipeline:show", "promptside pipeline show NAME|FILE",
            "the stages of a pipeline", "promptside pipeline show standard", takes=("NAME",),
        ),
        Verb(
            "pipeline check", "promptside_cli.pipeline:check", "promptside pipeline check NAME|FILE",
            "what is wrong in a pipeline file and its prompts", "promptside pipeline check my.toml",
            takes=("NAME",),
        ),
        Verb(
            "pipeline copy", "promptside_cli.pipeline:copy",
            "promptside pipeline copy NAME|FILE [--to project|user] [--as NAME]",
            "make a pipeline yours to edit", "promptside pipeline copy standard --to project",
            takes=("NAME",),
            options=(Option("--to", "project|user", choices=("project", "user")), Option("--as", "NAME")),
        ),
        Verb("doctor", "promptside_cli.doctor:doctor", "promptside doctor",
             "what is there, what is missing, what to do", "promptside doctor"),
        Verb("daemon run", "promptside_cli.daemon:run", "promptside daemon run",
             "the daemon in the foreground", "promptside daemon run"),
        Verb("daemon status", "promptside_cli.daemon:status", "promptside daemon status",
             "whether the daemon runs, and what it does", "promptside daemon status"),
        Verb("daemon stop", "promptside_cli.daemon:stop", "promptside daemon stop",
             "stop the daemon; agents at work go on", "promptside daemon stop"),
        Verb("daemon logs", "promptside_cli.daemon:logs", "promptside daemon logs",
             "the daemon's log", "promptside daemon logs"),
        Verb("lsp", "promptside_cli.lsp:serve", "promptside lsp",
             "the language server on standard input and output, for an editor to start", "promptside lsp"),
        Verb(
            "gc", "promptside_cli.gc:collect", "promptside gc [--dry-run]",
            "remove what retention allows", "promptside gc --dry-run", options=(Option("--dry-run"),),
        ),
    )
}  # fmt: skip

LATER = frozenset(
    {
        "agent", "plan", "todo", "pr", "work", "stats", "export", "clean", "chat", "reset-breaker",
        "task edit", "task claim", "task release",
    }
)  # fmt: skip
"""Verbs of the contract that nothing stands behind yet."""
