from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import anthropic

KEYRING_SERVICE = "compactoscope"
KEYRING_USER = "anthropic-api-key"
DEFAULT_BASE_URL = "https://api.anthropic.com"
"""The SDK's own default (api.md §1.2)."""


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """How the API is reached.

    Attributes:
        base_url: "" = `ANTHROPIC_BASE_URL`, the SDK profile, else the public API.
        timeout: seconds without any byte after which a call fails.
        retries: repeats by the SDK on 408, 409, 429, 5xx and connection errors.
    """

    base_url: str = ""
    timeout: float = 120.0
    retries: int = 2


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """Where the key would come from; never the key itself.

    Attributes:
        kind: environment, profile, keyring or none.
        label: for the person.
    """

    kind: str
    label: str


def credential_source(environment: Mapping[str, str] | None = None) -> CredentialSource:
    """Where a key would be found, without building a client and without reading the key.

    The order is the SDK's (api.md §1.2); the keyring comes last. Reading the keyring may ask the system.
    """
    env = os.environ if environment is None else environment
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        if env.get(name):
            return CredentialSource("environment", f"the environment variable {name}")
    if stored_key() is not None:
        return CredentialSource("keyring", "the system's keyring")
    return CredentialSource("profile", "the SDK's active profile, if there is one")


def stored_key() -> str | None:
    """The key kept in the system's keyring, None when there is none or no keyring works here."""
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(KEYRING_SERVICE, KEYRING_USER)
    except KeyringError:
        return None  # no keyring on this system: the environment and the SDK profile are left


def store_key(key: str) -> None:
    """Keep a key in the system's keyring; "" removes it.

    Raises:
        keyring.errors.KeyringError: the system has no keyring, or refused.
    """
    import keyring

    if key:
        keyring.set_password(KEYRING_SERVICE, KEYRING_USER, key)
    elif stored_key() is not None:
        keyring.delete_password(KEYRING_SERVICE, KEYRING_USER)


def host_of(settings: ApiSettings, environment: Mapping[str, str] | None = None) -> str:
    """The host that a request would go to, for the consent panel."""
    env = os.environ if environment is None else environment
    return urlsplit(settings.base_url or env.get("ANTHROPIC_BASE_URL") or DEFAULT_BASE_URL).netloc


def build_client(settings: ApiSettings) -> anthropic.Anthropic:
    """The SDK's client. Built only after the person pressed the button: building it may read profiles on disk."""
    import anthropic

    key = None
    if credential_source().kind == "keyring":
        key = stored_key()
    return anthropic.Anthropic(
        api_key=key, base_url=settings.base_url or None, timeout=settings.timeout, max_retries=settings.retries
    )
