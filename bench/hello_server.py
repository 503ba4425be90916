"""pygls's own hello server, as its documentation has it: what a start is compared with."""

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("hello", "v1")


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["."]))
def completions(_: types.CompletionParams) -> list[types.CompletionItem]:
    """Say hello."""
    return [types.CompletionItem(label="hello")]


if __name__ == "__main__":
    server.start_io()
