from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MASK = "•••"


@dataclass(frozen=True, slots=True)
class SecretKind:
    """One shape of secret.

    Attributes:
        name: what it is, shown in the mask.
        hints: lower-case substrings, one of which every match contains: looked for first, since most text has none.
        pattern: what to find; the group `secret` is replaced, or the whole match when there is no such group.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _kind(name: str, hints: tuple[str, ...], pattern: str, flags: int = 0) -> SecretKind:
    return SecretKind(name, hints, re.compile(pattern, flags))


# Quantifiers are bounded, and each pattern begins with a literal or a boundary: no input makes them slow.
SECRET_KINDS: tuple[SecretKind, ...] = (
    _kind(
        "private key",
        ("private key",),
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        # The body stops at the next five dashes, so a text of many beginnings is still read once.
        r"(?P<secret>(?:[^-]|-(?!----)){1,20000})",
    ),
    _kind("Anthropic key", ("sk-ant-",), r"\bsk-ant-[A-Za-z0-9_-]{16,200}"),
    _kind("API key", ("sk-", "rk-", "pk-"), r"\b[srp]k-(?:proj-|live-|test-|svcacct-)?[A-Za-z0-9_-]{20,200}"),
    _kind("Stripe key", ("_live_", "_test_"), r"\b(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{16,200}"),
    _kind("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{20,255}"),
    _kind("GitHub token", ("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{20,255}"),
    _kind("GitLab token", ("glpat-", "gldt-", "glrt-"), r"\bgl(?:pat|dt|rt)-[A-Za-z0-9_.-]{16,200}"),
    _kind("Slack token", ("xox", "xapp-"), r"\bx(?:ox[abprs]|app)-[A-Za-z0-9-]{10,250}"),
    _kind("Slack webhook", ("hooks.slack.com",), r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/_-]{10,200})"),
    _kind("AWS key id", ("akia", "asia", "aroa", "aida"), r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b"),
    _kind("Google key", ("aiza",), r"\bAIza[A-Za-z0-9_-]{35}"),
    _kind("Google token", ("ya29.",), r"\bya29\.[A-Za-z0-9_-]{20,400}"),
    _kind("registry token", ("npm_",), r"\bnpm_[A-Za-z0-9]{30,80}"),
    _kind("registry token", ("pypi-",), r"\bpypi-[A-Za-z0-9_-]{40,300}"),
    _kind("Hugging Face token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,80}"),
    _kind("SendGrid key", ("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),
    _kind("Azure key", ("accountkey=",), r"(?i)\bAccountKey=(?P<secret>[A-Za-z0-9+/=]{20,200})"),
    _kind("JSON web token", ("eyj",), r"\beyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{0,4000}"),
    _kind(
        "authorization header",
        ("bearer ", "basic ", "token "),
        r"(?i)\b(?:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?)?(?:bearer|basic)\s{1,3}(?P<secret>[A-Za-z0-9._~+/=-]{16,4000})",
    ),
    _kind(
        "password in a URL",
        ("://",),
        r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,200}:(?P<secret>[^\s/@\"'<>]{1,200})@",
    ),
    _kind(
        "secret value",
        ("password", "passwd", "pwd", "secret", "token", "key", "credential"),
        r"(?i)(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)"
        r"[A-Za-z0-9_]{0,30}[\"']?\s{0,3}(?:=>|:=|=|:)\s{0,3}"
        r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\s]{6,400})(?P=quote)|(?P<bare>[A-Za-z0-9+/=_.~!@#%^&*-]{8,400}))",
    ),
)
"""What is masked, most specific first; a later kind does not see what an earlier one has masked."""

_PLACEHOLDER = re.compile(
    r"(?i)^(?:\$\{?\w|process\.env|os\.environ|getenv|settings?\.|config\.|self\.|this\.|args?\.|<|\{\{|x{4,}|\*{3,}|redacted|"
    r"your[_-]|example|changeme|placeholder|none$|null$|undefined$|true$|false$|string$|number$|[\d.,]+$)"
)
_CALL_OR_TYPE = re.compile(r"^[A-Za-z_][A-Za-z_.]*$")


_HINTS = tuple(dict.fromkeys(hint for kind in SECRET_KINDS for hint in kind.hints))
"""Looked for once a text, since most texts have none."""


def mask_secrets(text: str) -> str:
    """The text with every recognised secret replaced by `•••` and its kind; what surrounds it stays readable.

    Linear in the length of the text. Passwords that look like words (`password: string`) are left, since code is full
    of them; values in quotation marks or with digits are not.
    """
    lower = text.lower()
    present = [hint for hint in _HINTS if hint in lower]
    if present:
        for kind in SECRET_KINDS:
            if any(hint in present for hint in kind.hints):
                text = kind.pattern.sub(_replacement(kind), text)
    return text


def contains_secret(text: str) -> bool:
    """True when `mask_secrets` would change the text."""
    return mask_secrets(text) != text


def _replacement(kind: SecretKind) -> Callable[[re.Match[str]], str]:
    mask = f"{MASK}[{kind.name}]"

    def replace(match: re.Match[str]) -> str:
        groups = match.groupdict()
        if "bare" in groups:
            return _masked_value(match, mask)
        if "secret" not in groups:
            return mask
        begin, end = match.span("secret")
        whole = match.group()
        if MASK in whole:
            return whole
        return whole[: begin - match.start()] + mask + whole[end - match.start() :]

    return replace


def _masked_value(match: re.Match[str], mask: str) -> str:
    """A value after `password =`: masked unless it is a reference, a type or a placeholder."""
    group = "quoted" if match.group("quoted") is not None else "bare"
    value = match.group(group)
    whole = match.group()
    plain_word = group == "bare" and _CALL_OR_TYPE.match(value)
    if MASK in value or plain_word or _PLACEHOLDER.match(value):
        return whole
    begin, end = match.span(group)
    return whole[: begin - match.start()] + mask + whole[end - match.start() :]
