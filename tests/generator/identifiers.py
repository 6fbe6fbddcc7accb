from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Identifiers:
    """Ids in the shapes the client uses, from one seeded random source."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def uuid(self) -> str:
        """A version-4 uuid."""
        digits = f"{self._rng.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def message(self) -> str:
        """The id of one API response."""
        return "msg_01" + "".join(self._rng.choices(_ALPHABET, k=22))

    def request(self) -> str:
        """The request id that the API returned with the response."""
        return "req_011C" + "".join(self._rng.choices(_ALPHABET, k=20))

    def tool_use(self) -> str:
        """The id that joins a tool_use block and its tool_result."""
        return "toolu_01" + "".join(self._rng.choices(_ALPHABET, k=22))

    def hexadecimal(self, digits: int) -> str:
        """A run of hexadecimal digits, as in subagent ids."""
        return f"{self._rng.getrandbits(4 * digits):0{digits}x}"


def iso_timestamp(milliseconds: int) -> str:
    """Milliseconds since 1970 as the client writes a time: 2026-07-26T13:55:03.346Z."""
    return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")[:-6] + "Z"
