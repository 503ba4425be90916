"""DA-6: no secret survives redaction, whole or in pieces; text about secrets stays readable."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptside_daemon.world.redact import REDACTED, Redactor, secret_values

# Put together here, so that no scanner takes this file for a leak.
TOKENS = {
    "anthropic": "sk-" + "ant-api03-" + "Zx9_Yw8-" * 5,
    "openai": "sk-" + "proj-" + "a1B2c3D4" * 4,
    "github": "ghp_" + "A1b2C3d4E5" * 3,
    "github app": "ghs_" + "A1b2C3d4E5" * 3,
    "github fine": "github_pat_" + "11ABCDEFG0" * 4,
    "gitlab": "glpat-" + "abcDEF123_-4567890xyz",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "slack": "xoxb-" + "123456789012-abcdefGHIJKL",
    "npm": "npm_" + "aB3" * 12,
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "SflKxwRJSMeKKF2QT4",
}
KEY_BODY = "MIIEpAIBAAKCAQEA7bq0c0ffeec0ffee\nq1w2e3r4t5y6u7i8o9p0asdfghjklzxc\nQUJD"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS.keys())
def test_a_token_is_replaced_wherever_it_stands(token: str) -> None:
    for text in (token, f"key: {token}.", f'"{token}"', f"x={token}&y=1", f"line\n{token}\nline"):
        assert token not in Redactor().text(text)
        assert REDACTED in Redactor().text(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdef0123456789abcdef", f"Authorization: Bearer {REDACTED}"),
        ("postgres://app:hunter2@db/x", f"postgres://app:{REDACTED}@db/x"),
        ('{"password": "hunter2hunter2"}', f'{{"password": "{REDACTED}"}}'),
        ("DB_PASSWORD=hunter2hunter2", f"DB_PASSWORD={REDACTED}"),
        ("https://x.example/?token=abc123def456&a=b", f"https://x.example/?token={REDACTED}"),
        (f"before\n{PEM}\nafter", f"before\n{REDACTED}\nafter"),
        (PEM.replace("\n", "\\n"), REDACTED),
    ],
)
def test_what_stands_around_a_secret_is_kept(text: str, left: str) -> None:
    assert Redactor().text(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password(user)",
        "def login(self, password: str, token: str | None = None) -> None:",
        "The token is read from the header; a bearer token is never logged.",
        "max_tokens=200000",
        "A key starts with -----BEGIN RSA PRIVATE KEY----- and then the lines of the key.",
        "http://localhost:8080/a@b",
        "skip-the-secret-step and disk-usage",
        'api_key = os.environ["ANTHROPIC_API_KEY"]',
    ],
)
def test_text_about_secrets_is_left_alone(text: str) -> None:
    assert Redactor().text(text) is text


def test_values_of_the_environment_are_found_by_their_names() -> None:
    environment = {
        "ANTHROPIC_API_KEY": "dummy-key-1",
        "GH_TOKEN": "plainvalue",
        "PGPASSWORD": "p4ssw0rd",
        "AWS_SECRET_ACCESS_KEY": "aws/value",
        "SSH_AUTH_SOCK": "/run/agent.sock",
        "KEYBOARD": "querty-board",
        "USE_TOKEN": "1",
        "PATH": "/usr/bin:/bin",
    }
    found = secret_values(environment)
    assert found == {"dummy-key-1", "plainvalue", "p4ssw0rd", "aws/value"}
    assert Redactor(found).text("echo plainvalue /usr/bin") == f"echo {REDACTED} /usr/bin"


def test_json_like_data_is_redacted_at_any_depth_and_in_keys() -> None:
    token = TOKENS["github"]
    data = {"a": [{"b": (token, 1, None, True)}], token: {"c": f"x {token}"}}
    assert token not in repr(Redactor().data(data))
    assert Redactor().data({"n": 1, "t": ("a", ["b"])}) == {"n": 1, "t": ("a", ["b"])}


VALUES = ["correct horse battery", "line one\nline two", "abcabcabcabd"]
SECRETS = [*TOKENS.values(), *VALUES]
filler = st.text(alphabet="ab c\n\"'=:.-_/Ax", max_size=30)


def chunked(text: str, cuts: list[int]) -> list[str]:
    ends = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(ends)]


@settings(deadline=None)
@given(
    st.lists(st.tuples(filler, st.sampled_from(SECRETS)), min_size=1, max_size=3),
    st.lists(st.integers(0, 999)),
)
def test_no_secret_survives_being_cut_into_pieces(parts: list[tuple[str, str]], cuts: list[int]) -> None:
    text = "".join(f"{before} {secret} " for before, secret in parts)
    stream = Redactor(VALUES).stream()
    shown = "".join(stream.feed(piece) for piece in chunked(text, cuts)) + stream.flush()
    for _, secret in parts:
        assert secret not in shown


@settings(deadline=None)
@given(st.lists(st.integers(0, 999)), st.sampled_from(["hunter2hunter2hunter2", "abcdef0123456789"]))
def test_a_secret_known_by_what_stands_before_it_survives_no_cut(cuts: list[int], secret: str) -> None:
    for text in (
        f'so "password" : "{secret}" is set',
        f"Bearer   {secret} is sent",
        f"API_KEY={secret} make",
        f"see https://me:{secret}@host/x now",
    ):
        stream = Redactor().stream()
        shown = "".join(stream.feed(piece) for piece in chunked(text, cuts)) + stream.flush()
        assert secret not in shown
        assert shown == Redactor().text(text)


@settings(deadline=None)
@given(st.lists(st.integers(0, 999)))
def test_no_line_of_a_key_block_survives_a_cut(cuts: list[int]) -> None:
    text = f"the key is\n{PEM}\nand that is all"
    stream = Redactor().stream()
    shown = "".join(stream.feed(piece) for piece in chunked(text, cuts)) + stream.flush()
    assert shown == f"the key is\n{REDACTED}\nand that is all"


@settings(deadline=None)
@given(filler, st.lists(st.integers(0, 99)))
def test_text_without_secrets_comes_through_whole(text: str, cuts: list[int]) -> None:
    stream = Redactor().stream()
    assert "".join(stream.feed(piece) for piece in chunked(text, cuts)) + stream.flush() == text


@pytest.mark.parametrize(
    "text",
    [
        "token=" * 10_000,
        "eyJ-" * 15_000,
        "sk-" * 20_000,
        "a" * 60_000,
        "password" + " " * 60_000,
        "-----BEGIN PRIVATE KEY-----\n" * 2_000,
        "-----BEGIN PRIVATE KEY-----\n" + "QUJDREVGR0hJSktMTU5P" * 3_000,
        "://a:" * 12_000,
        "bearer " * 9_000,
        "A-:" * 20_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_text_takes_more_than_its_length_in_time(text: str) -> None:
    """Without the ends that the patterns have, some of these would take hours."""
    Redactor(VALUES).text(text)
    stream = Redactor(VALUES).stream()
    shown = [stream.feed(text[start : start + 500]) for start in range(0, len(text), 500)]
    assert sum(map(len, shown)) > 0 or REDACTED in stream.flush()


def test_words_are_shown_as_they_come() -> None:
    stream = Redactor(VALUES).stream()
    assert stream.feed("The queue drops the sec") == "The queue drops the "
    assert stream.feed("ond chunk. ") == "second chunk. "
