"""Secrets are masked, code stays readable, and no text makes the masking slow (issue 7: secrets in snippets)."""

from __future__ import annotations

from re._constants import MAXREPEAT
from re._parser import SubPattern, parse
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.catalogue.masking import SECRET_KINDS, SecretKind, contains_secret, mask_secrets

RANDOM = "Zk3vQ9xLm2Tn8Rp5Ws7Yd4Hf6Jg1Bc0A"

SECRETS = (
    "sk-ant-api03-" + RANDOM,
    "sk-proj-" + RANDOM,
    "sk_live_" + RANDOM,
    "ghp_" + RANDOM + "abcd",
    "github_pat_" + RANDOM,
    "glpat-" + RANDOM,
    "xoxb-123456789012-" + RANDOM,
    "AKIA" + "ABCDEFGH12345678",
    "AIza" + RANDOM + "abc",
    "npm_" + RANDOM + "abcd",
    "pypi-" + RANDOM * 2,
    "hf_" + RANDOM,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + RANDOM,
)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "export KEY={}\n", '{{"key": "{}"}}', "see {} there"])
def test_a_key_is_masked_wherever_it_stands(secret: str, around: str) -> None:
    masked = mask_secrets(around.format(secret))
    assert secret not in masked
    assert RANDOM not in masked
    assert "•••" in masked


@pytest.mark.parametrize(
    ("text", "hidden", "kept"),
    [
        ("postgres://tide:Sturmflut@db.example/x", "Sturmflut", "postgres://tide:"),
        ("https://user:p%40ss@host/path?x=1", "p%40ss", "@host/path"),
        ("Authorization: Bearer " + RANDOM, RANDOM, "Bearer"),
        ("PASSWORD='Sturm!flut'", "Sturm!flut", "PASSWORD="),
        ('"client_secret": "' + RANDOM + '"', RANDOM, "client_secret"),
        ("DB_PASSWORD=hunter2hunter2", "hunter2", "DB_PASSWORD="),
        ("aws_secret_access_key = " + RANDOM + "abcdefgh", RANDOM, "aws_secret_access_key"),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n-----END OPENSSH PRIVATE KEY-----",
            "b3BlbnNz",
            "BEGIN OPENSSH",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQ", "MIIEvQ", "BEGIN PRIVATE"),
        ("AccountKey=" + RANDOM + "==;Endpoint", RANDOM, "Endpoint"),
    ],
)
def test_what_surrounds_a_secret_stays(text: str, hidden: str, kept: str) -> None:
    masked = mask_secrets(text)
    assert hidden not in masked
    assert kept in masked


@pytest.mark.parametrize(
    "text",
    [
        "password: string",
        "token = get_token(user)",
        "max_tokens: 4096000000",
        "input_tokens: 1234567890",
        "password = os.environ['PASSWORD']",
        "secret: ${{ secrets.NAME }}",
        "the password is wrong",
        "https://example.com:8080/path",
        "git@github.com:someone/project.git",
        "task-runner-and-something-else-in-words",
        "sha256:0123456789abcdef0123456789abcdef",
    ],
)
def test_code_and_prose_stay(text: str) -> None:
    assert mask_secrets(text) == text
    assert not contains_secret(text)


@given(st.text(max_size=300))
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = mask_secrets(text)
    assert mask_secrets(once) == once


@given(
    st.sampled_from(SECRETS),
    st.text(alphabet=" \n\"'=:,;(){}", max_size=20),
    st.text(alphabet=" \n\"',;)}", max_size=20),
)
def test_no_secret_survives_its_surroundings(secret: str, before: str, after: str) -> None:
    assert secret not in mask_secrets(before + secret + after)


@pytest.mark.parametrize("kind", SECRET_KINDS, ids=lambda kind: kind.name)
def test_every_repeat_is_bounded(kind: SecretKind) -> None:
    """An unbounded repeat inside a pattern is what makes a text of a megabyte take minutes."""
    assert _unbounded(parse(kind.pattern.pattern)) == 0
    assert kind.hints == tuple(hint.lower() for hint in kind.hints)


def _unbounded(node: Any) -> int:
    """Repeats without an upper bound in a parsed pattern."""
    if isinstance(node, tuple) and len(node) == 3 and isinstance(node[0], int) and not isinstance(node[0], str):
        return (node[1] is MAXREPEAT) + _unbounded(node[2])
    return sum(_unbounded(inner) for inner in node) if isinstance(node, (tuple, list, SubPattern)) else 0


def test_the_check_for_bounds_sees_an_unbounded_repeat() -> None:
    assert _unbounded(parse(r"a(?:b+c){0,3}d*")) == 2
