"""Plays a recorded transcript as if it were the Claude CLI: run by path, standard library only.

    python -I -S player.py recorded|elsewhere|made-up FILE SESSION PACE [REMARK]

It waits for the prompt, asks what was asked and waits for the answer, and makes the recorded edits for real in
the current directory. What a person answers, denies or says counts; the rest is as it was recorded. Elsewhere is
another project than the recorded one, where no file is written over; what there is to say of that is said first.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CWD = "{{cwd}}"
"""Stands in recordings for the directory that they were made in."""
SESSION = "{{session}}"
DELTA_SECONDS = 0.008
LINE_SECONDS = 0.12
INTERRUPTED = "[Request interrupted by user]"
UNHEARD = "Nobody is there any more to answer this."


class Interrupted(Exception):
    """The host broke the turn off."""


class Closed(Exception):
    """The host sends nothing more."""


class Host:
    """The other end of stdin and stdout."""

    def __init__(self, session: str, pace: float) -> None:
        self.session = session
        self.pace = pace
        self.held = b""
        self.messages: list[str] = []
        self.answers: dict[str, Any] = {}
        self.in_turn = False
        self.interrupted = False
        self.closed = False

    def send(self, event: dict[str, Any]) -> None:
        """Write one event; a whole line, without blanks, as the CLI does."""
        data = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]

    def receive(self, seconds: float | None) -> None:
        """Take what came within some seconds (None: until something comes)."""
        if self.closed:
            raise Closed
        if not select.select([0], [], [], seconds)[0]:
            return
        chunk = os.read(0, 1 << 20)
        if not chunk:
            self.closed = True
            return
        *lines, self.held = (self.held + chunk).split(b"\n")
        for line in lines:
            self.take(json.loads(line))

    def take(self, message: dict[str, Any]) -> None:
        """Sort one message of the host."""
        if message["type"] == "user":
            self.messages.append(message["message"]["content"])
        elif message["type"] == "control_response":
            response = message["response"]
            self.answers[response["request_id"]] = response.get("response") or {}
        elif message["type"] == "control_request":
            if message["request"]["subtype"] == "interrupt" and (self.in_turn or self.messages):
                self.interrupted = True
            answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            self.send({"type": "control_response", "response": answer})

    def message(self) -> str:
        """Wait for the next message; Closed if none comes any more."""
        self.in_turn = False  # between two turns there is nothing to break off
        while not self.messages:
            self.receive(None)
        self.in_turn = True
        return self.messages.pop(0)

    def answer(self, request: str) -> dict[str, Any]:
        """Wait for the answer to a request; a denial if none can come any more."""
        while request not in self.answers:
            try:
                self.receive(None)
            except Closed:
                return {"behavior": "deny", "message": UNHEARD}
            self.listen()
        answer: dict[str, Any] = self.answers.pop(request)
        return answer

    def pause(self, seconds: float) -> None:
        """As long as an agent would take, unless the host has something to say."""
        deadline = time.monotonic() + seconds * self.pace
        while not self.closed:
            left = max(deadline - time.monotonic(), 0)
            self.receive(left)
            self.listen()
            if left <= 0:
                return
        # The turn in progress is played to its end, as the CLI does when its input ends.
        time.sleep(max(deadline - time.monotonic(), 0))

    def listen(self) -> None:
        """Break off if the host has said so."""
        if self.interrupted:
            self.interrupted = False
            raise Interrupted


class Recording:
    """The lines of a transcript, and what became of each of its tool calls here."""

    def __init__(self, path: str, host: Host, remark: str = "", *, elsewhere: bool = False) -> None:
        self.remark = remark
        self.elsewhere = elsewhere
        here = json.dumps(str(Path.cwd()))[1:-1]
        text = Path(path).read_text(encoding="utf-8").replace(CWD, here).replace(SESSION, host.session)
        self.lines = [line for line in text.split("\n") if line]
        self.init = next((line for line in self.lines if json.loads(line).get("subtype") == "init"), "")
        self.place = 0
        self.host = host
        self.message: int | None = None
        self.open: list[str] = []
        self.over: set[str] = set()
        self.given: dict[str, dict[str, Any]] = {}
        self.denied: list[dict[str, Any]] = []
        self.uses: dict[str, dict[str, Any]] = {}
        self.broken_off = False

    def play(self) -> bool:
        """On to the end of the turn; false if there was nothing left."""
        if self.place >= len(self.lines):
            return False
        if self.broken_off:
            self.broken_off = False
            self.host.send(json.loads(self.init))
        while self.place < len(self.lines):
            event = json.loads(self.lines[self.place])
            self.host.pause(DELTA_SECONDS if event["type"] == "stream_event" else LINE_SECONDS)
            self.place += 1
            if self.is_over(event):
                continue
            self.note(event)
            self.host.send(event)
            if event.get("subtype") == "init" and self.remark:
                utter(self.host, self.remark)
                self.remark = ""
            if event["type"] == "control_request":
                self.ask(event)
            if event["type"] == "result":
                return True
        return True

    def note(self, event: dict[str, Any]) -> None:
        """Do and remember what an event tells of; where it came otherwise here, say that in its place."""
        if event["type"] == "stream_event":
            if event["event"]["type"] == "message_start":
                self.message = self.place - 1
            elif event["event"]["type"] == "message_stop":
                self.message = None
        elif event["type"] == "assistant":
            for block in blocks(event):
                if block["type"] == "tool_use":
                    self.open.append(block["id"])
                    self.uses[block["id"]] = block
        elif event["type"] == "user":
            self.result(event)
        elif event["type"] == "result":
            event.setdefault("permission_denials", []).extend(self.denied)
            self.denied = []

    def ask(self, event: dict[str, Any]) -> None:
        """Wait as the CLI does, and keep what the host said about this call."""
        use = event["request"]["tool_use_id"]
        given = self.given[use] = self.host.answer(event["request_id"])
        if given.get("behavior") == "deny":
            name, tool_input = event["request"]["tool_name"], event["request"]["input"]
            self.denied.append({"tool_name": name, "tool_use_id": use, "tool_input": tool_input})
        if given.get("interrupt"):
            raise Interrupted

    def result(self, event: dict[str, Any]) -> None:
        """Make the edit that a tool result tells of, or put in its place what came of the call here."""
        for block in blocks(event):
            if block["type"] != "tool_result":
                continue
            use = block["tool_use_id"]
            if use in self.open:
                self.open.remove(use)
            given = self.given.get(use, {})
            if given.get("behavior") == "deny":
                event.update(refusal(use, given.get("message") or "denied", "user_reject"))
                return
            answers = (given.get("updatedInput") or {}).get("answers")
            if answers is not None:
                said = ", ".join(f'"{question}"="{answer}"' for question, answer in answers.items())
                block["content"] = (
                    f"Your questions have been answered: {said}. You can now continue with these answers in mind."
                )
                if isinstance(event.get("tool_use_result"), dict):
                    event["tool_use_result"]["answers"] = answers
        done = event.get("tool_use_result")
        if isinstance(done, dict) and "filePath" in done:
            edit(done, elsewhere=self.elsewhere)

    def is_over(self, event: dict[str, Any]) -> bool:
        """Whether an event belongs to a call that an interrupt has ended."""
        if event["type"] == "control_request":
            return event["request"]["tool_use_id"] in self.over
        results = [block["tool_use_id"] for block in blocks(event) if block["type"] == "tool_result"]
        return bool(results) and self.over.issuperset(results)

    def break_off(self) -> bool:
        """End what is open, and be ready to go on with the next message; true if a call was open."""
        self.broken_off = True
        ended, self.open = self.open, []
        for use in ended:
            words = self.given.get(use, {}).get("message") or INTERRUPTED
            line = {"type": "user", "parent_tool_use_id": None, "session_id": self.host.session}
            self.host.send({**line, **refusal(use, words, "user_abort")})
        self.over.update(ended)
        if not ended:
            self.say_again()
        return bool(ended)

    def say_again(self) -> None:
        """Go back to where the message begins that was cut short, which is another one then."""
        if self.message is None:
            return
        old = json.loads(self.lines[self.message])["event"]["message"]["id"]
        self.place = self.message
        self.lines[self.place :] = [line.replace(old, f"{old}-again") for line in self.lines[self.place :]]


def blocks(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The content blocks of a message; a plain string is none."""
    content = (event.get("message") or {}).get("content")
    return content if isinstance(content, list) else []


def refusal(use: str, words: str, source: str) -> dict[str, Any]:
    """What a tool result says of a call that was not made."""
    block = {"type": "tool_result", "tool_use_id": use, "content": words, "is_error": True}
    verdict = {"decision": "reject", "source": source}
    return {
        "message": {"role": "user", "content": [block]},
        "tool_use_result": f"Error: {words}",
        "tool_result_meta": [{"id": use, "permission_decision": verdict}],
    }


def edit(done: dict[str, Any], *, elsewhere: bool = False) -> None:
    """Do what a Write or an Edit did, inside the current directory only; elsewhere what is there stays."""
    path = Path(done["filePath"]).resolve()
    if not path.is_relative_to(Path.cwd().resolve()):
        return
    if done.get("type") in ("create", "update") and "content" in done:
        if elsewhere and path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(done["content"].encode())
    elif "oldString" in done and path.is_file():
        before = path.read_bytes().decode()
        count = -1 if done.get("replaceAll") else 1
        path.write_bytes(before.replace(done["oldString"], done["newString"], count).encode())


def main(kind: str, path: str, session: str, pace: str, remark: str = "") -> int:
    """One process: a turn for each message, until the host closes."""
    host = Host(session, float(pace))
    recording = None if kind == "made-up" else Recording(path, host, remark, elsewhere=kind == "elsewhere")
    made_up = json.loads(Path(path).read_bytes()) if recording is None else {}
    while True:
        try:
            prompt = host.message()
        except Closed:
            return 0
        try:
            if recording is None:
                invent(host, made_up)
            elif not recording.play():
                speak(host, "There is nothing more in this rehearsal. You said: " + prompt[:400], None)
        except Interrupted:
            in_call = recording is not None and recording.break_off()
            message = {"role": "user", "content": [{"type": "text", "text": INTERRUPTED}]}
            host.send({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": session})
            reason = "aborted_tools" if in_call else "aborted_streaming"
            result(host, "", None, subtype="error_during_execution", reason=reason)


def invent(host: Host, made_up: dict[str, Any]) -> None:
    """A turn for a stage that was not recorded."""
    host.pause(LINE_SECONDS)
    host.send(
        {
            "type": "system",
            "subtype": "init",
            "cwd": str(Path.cwd()),
            "session_id": host.session,
            "tools": [],
            "mcp_servers": [],
            "model": "rehearsal",
            "permissionMode": "default",
            "claude_code_version": "0.0.0",
        }
    )
    speak(host, made_up["text"], made_up["structured"])


def speak(host: Host, text: str, structured: Any) -> None:
    """Say one text, and end the turn."""
    utter(host, text)
    result(host, text, structured)


def utter(host: Host, text: str) -> None:
    """Say one text."""
    message = {
        "id": f"msg_{time.monotonic_ns()}",
        "type": "message",
        "role": "assistant",
        "model": "rehearsal",
        "content": [{"type": "text", "text": text}],
        "stop_reason": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    host.send(
        {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": host.session}
    )


def result(
    host: Host, text: str, structured: Any, *, subtype: str = "success", reason: str = "completed"
) -> None:
    """The end of a turn."""
    event = {
        "type": "result",
        "subtype": subtype,
        "is_error": subtype != "success",
        "num_turns": 1,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "total_cost_usd": 0,
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "modelUsage": {},
        "permission_denials": [],
        "terminal_reason": reason,
        "session_id": host.session,
    }
    if subtype == "success":
        event["result"] = text
    else:
        event["errors"] = []
    if structured is not None:
        event["structured_output"] = structured
    host.send(event)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
