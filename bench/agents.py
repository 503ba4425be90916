"""Agents that stand in for `claude`: a script of a few lines, and the pipeline of one stage that it works in."""

from __future__ import annotations

import sys

from measure import Person

_PROGRAM = """#!{python} -I
import json, sys, time
if "--version" in sys.argv:
    print("2.1.330 (Claude Code)"); sys.exit()
sys.stdin.readline()
def line(**event): sys.stdout.write(json.dumps({{"session_id": "s", "parent_tool_use_id": None, **event}}) + "\\n")
def result(**more):
    line(type="result", subtype="success", is_error=False, num_turns=1, duration_ms=1, duration_api_ms=1,
         total_cost_usd=0.0, usage={{"input_tokens": 1, "output_tokens": 1}}, modelUsage={{}},
         permission_denials=[], terminal_reason="completed", **more)
line(type="system", subtype="init", cwd="/", tools=["Read"], mcp_servers=[], model="fake",
     permissionMode="default", claude_code_version="2.1.330")
{script}
sys.stdout.flush()
sys.stdin.read()
"""

_PIPELINE = """
[[stage]]
id = "work"
name = "Work"
input = "user"
prompt = "Work: {{ task_description }}"
tools = ["Read"]
permission = "deny"
"""


def install(somebody: Person, script: str, more: str = "") -> None:
    """Make it this person's agent; `bench` is its pipeline, with `more` keys of the stage."""
    program = somebody.data.parent / "claude"
    program.write_text(_PROGRAM.format(python=sys.executable, script=script))
    program.chmod(0o755)
    somebody.environment["PROMPTSIDE_CLAUDE"] = str(program)
    pipelines = somebody.data / "config" / "pipelines"
    pipelines.mkdir(parents=True, exist_ok=True)
    (pipelines / "bench.toml").write_text(_PIPELINE + more)
