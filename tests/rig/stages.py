"""What the model answers in a stage of the shipped pipeline."""

from functools import cache

from rig.messages_api import Failure, Reply, Rule

from promptside_daemon.pipelines.find import SHIPPED
from promptside_daemon.pipelines.load import load


def in_stage(stage: str, *replies: Reply | Failure) -> Rule:
    """The answers in conversations that began with the prompt of this stage, also when they are resumed."""
    return Rule(_beginnings()[stage], replies)


@cache
def _beginnings() -> dict[str, str]:
    """The first line of each stage's prompt; no two are alike."""
    pipeline = load(SHIPPED / "standard.toml", "shipped").pipeline
    assert pipeline is not None
    found = {stage.id: stage.prompt.partition("\n")[0] for stage in pipeline.stages}
    assert len(set(found.values())) == len(found)
    return found
