"""What turns have used, in tokens, time and money."""

from msgspec import Struct

from promptside_daemon.world.claude.lines import Result


class Metrics(Struct, frozen=True, kw_only=True):
    """What a turn has used; `session_cost_usd` counts the whole session so far (CLAUDE_CLI.md 0.8)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_written_tokens: int = 0
    duration_ms: int = 0
    api_ms: int = 0
    turns: int = 0
    session_cost_usd: float = 0.0
    denials: int = 0

    def plus(self, later: "Metrics") -> "Metrics":
        """This turn and a later one of the same session."""
        return Metrics(
            input_tokens=self.input_tokens + later.input_tokens,
            output_tokens=self.output_tokens + later.output_tokens,
            cache_read_tokens=self.cache_read_tokens + later.cache_read_tokens,
            cache_written_tokens=self.cache_written_tokens + later.cache_written_tokens,
            duration_ms=self.duration_ms + later.duration_ms,
            api_ms=self.api_ms + later.api_ms,
            turns=self.turns + later.turns,
            session_cost_usd=max(self.session_cost_usd, later.session_cost_usd),
            denials=self.denials + later.denials,
        )


def attempt_cost(session_cost_usd: float, before_usd: float) -> float:
    """What this attempt has cost, if its session had cost `before_usd` when it began."""
    return max(0.0, session_cost_usd - before_usd)


def of_turn(result: Result) -> Metrics:
    return Metrics(
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cache_read_tokens=result.usage.cache_read_input_tokens,
        cache_written_tokens=result.usage.cache_creation_input_tokens,
        duration_ms=round(result.duration_ms),
        api_ms=round(result.duration_api_ms),
        turns=result.num_turns,
        session_cost_usd=result.total_cost_usd,
        denials=len(result.permission_denials),
    )
