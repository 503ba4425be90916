"""Plays a recorded transcript as if it were the Claude CLI: run by path, standard library only.

    python -I -S player.py recorded|made-up FILE SESSION PACE

It waits for the prompt, asks what was asked and waits for the answer, and makes the recorded edits for real in
the current directory. What a person answers, denies or says counts; the rest is as it was recorded.
"""

import json
import os
import select
import sys
import time

CWD = "{{cwd}}"
"""Stands in recordings for the directory that they were made in."""
SESSION = "{{session}}"
DELTA_SECONDS = 0.008
LINE_SECONDS = 0.12
INTERRUPTED = "[Request interrupted by user]"


class Interrupted(Exception):
    """The host broke the turn off."""


class Closed(Exception):
    """The host sends nothing more."""


class Host:
    """The other end of stdin and stdout."""

    def __init__(self, session, pace):
        self.session = session
        self.pace = pace
        self.held = b""
        self.lines = []
        self.messages = []
        self.answers = {}
        self.closed = False

    def send(self, line):
        """Write one event; a whole line, at once."""
        if isinstance(line, dict):
            line = json.dumps(line)
        os.write(1, line.encode() + b"\n") if len(line) < 4096 else _write_all(line.encode() + b"\n")

    def receive(self, seconds):
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

    def take(self, message):
        """Sort one message of the host."""
        if message["type"] == "user":
            self.messages.append(message["message"]["content"])
        elif message["type"] == "control_response":
            response = message["response"]
            self.answers[response["request_id"]] = response.get("response") or {}
        elif message["type"] == "control_request":
            wanted = message["request"]["subtype"]
            self.send(
                {
                    "type": "control_response",
                    "response": {"subtype": "success", "request_id": message["request_id"], "response": {}},
                }
            )
            if wanted == "interrupt":
                raise Interrupted

    def message(self):
        """Wait for the next message; Closed if none comes any more."""
        while not self.messages:
            self.receive(None)
        return self.messages.pop(0)

    def answer(self, request):
        """Wait for the answer to a request."""
        while request not in self.answers:
            self.receive(None)
        return self.answers.pop(request)

    def pause(self, seconds):
        """As long as an agent would take, unless the host has something to say."""
        deadline = time.monotonic() + seconds * self.pace
        while True:
            left = max(deadline - time.monotonic(), 0)
            if self.closed:
                time.sleep(left)
                return
            self.receive(left)
            if left <= 0:
                return


class Recording:
    """The lines of a transcript, and what became of each of its tool uses here."""

    def __init__(self, path, host):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        here = json.dumps(os.getcwd())[1:-1]
        text = text.replace(CWD, here).replace(SESSION, host.session)
        self.lines = [line for line in text.split("\n") if line]
        self.place = 0
        self.host = host
        self.given = {}

    def play(self):
        """On to the end of the turn; false if there was nothing left."""
        if self.place >= len(self.lines):
            return False
        while self.place < len(self.lines):
            line = self.lines[self.place]
            event = json.loads(line)
            kind = event["type"]
            self.host.pause(DELTA_SECONDS if kind == "stream_event" else LINE_SECONDS)
            self.place += 1
            if kind == "user":
                line = self.result(event, line)
            self.host.send(line)
            if kind == "control_request":
                self.ask(event)
            if kind == "result":
                return True
        return True

    def ask(self, event):
        """Wait as the CLI does, and keep what the host said about this tool use."""
        use = event["request"]["tool_use_id"]
        given = self.host.answer(event["request_id"])
        self.given[use] = given
        if given.get("interrupt"):
            raise Interrupted

    def result(self, event, line):
        """Make the edit that a tool result tells of, or tell what came of it here instead."""
        content = event["message"]["content"]
        if not isinstance(content, list):
            return line
        for block in content:
            if block.get("type") != "tool_result":
                continue
            given = self.given.get(block["tool_use_id"])
            if given is not None and given.get("behavior") == "deny":
                block["content"] = given.get("message") or "denied"
                block["is_error"] = True
                event.pop("tool_use_result", None)
                event["tool_result_meta"] = [
                    {
                        "id": block["tool_use_id"],
                        "permission_decision": {"decision": "reject", "source": "user_reject"},
                    }
                ]
                return json.dumps(event)
            answers = ((given or {}).get("updatedInput") or {}).get("answers")
            if answers is not None:
                said = ", ".join(f'"{question}"="{answer}"' for question, answer in answers.items())
                block["content"] = f"Your questions have been answered: {said}. You can now continue."
                return json.dumps(event)
        done = event.get("tool_use_result")
        if isinstance(done, dict) and "filePath" in done:
            edit(done)
        return line


def edit(done):
    """Do what a Write or an Edit did, inside the current directory only."""
    path = os.path.realpath(done["filePath"])
    root = os.path.realpath(os.getcwd())
    if os.path.commonpath([path, root]) != root:
        return
    if done.get("type") in ("create", "update") and "content" in done:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(done["content"])
    elif "oldString" in done:
        try:
            with open(path, encoding="utf-8") as file:
                before = file.read()
        except OSError:
            return
        count = -1 if done.get("replaceAll") else 1
        with open(path, "w", encoding="utf-8") as file:
            file.write(before.replace(done["oldString"], done["newString"], count))


def main(kind, path, session, pace):
    """One process: a turn for each message, until the host closes."""
    host = Host(session, float(pace))
    recording = Recording(path, host) if kind == "recorded" else None
    made_up = None
    if recording is None:
        with open(path, encoding="utf-8") as file:
            made_up = json.load(file)
    said = ""
    while True:
        try:
            prompt = said or host.message()
            said = ""
            if recording is None:
                invent(host, made_up)
            elif not recording.play():
                speak(host, "There is nothing more in this rehearsal. You said: " + prompt[:400], None)
        except Interrupted:
            host.send(
                {
                    "type": "user",
                    "message": {"role": "user", "content": [{"type": "text", "text": INTERRUPTED}]},
                    "parent_tool_use_id": None,
                    "session_id": session,
                }
            )
            result(host, "", None, subtype="error_during_execution", reason="aborted_streaming")
        except Closed:
            return 0


def invent(host, made_up):
    """A turn for a stage that was not recorded."""
    host.pause(LINE_SECONDS)
    host.send(
        {
            "type": "system",
            "subtype": "init",
            "cwd": os.getcwd(),
            "session_id": host.session,
            "tools": [],
            "mcp_servers": [],
            "model": "rehearsal",
            "permissionMode": "default",
            "claude_code_version": "0.0.0",
        }
    )
    speak(host, made_up["text"], made_up["structured"])


def speak(host, text, structured):
    """Say one text, and end the turn."""
    message = {
        "id": "msg_%d" % time.monotonic_ns(),
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
    result(host, text, structured)


def result(host, text, structured, subtype="success", reason="completed"):
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


def _write_all(data):
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
