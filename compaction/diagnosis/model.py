"""What the doctor says, as plain data: violations of the API's rules in a request, findings in a session, repairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
"""`error`: the API (or a client generation) refuses it or loses data; `warning`: depends on facts that the file does
not hold; `info`: worth knowing, nothing to mend."""

Place = tuple[int, int]
"""A block of a wire request: (message number, block number), 0-based; block -1 is the message as a whole."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule of the Messages API that a request breaks.

    Attributes:
        rule: R01 … R40 (api-rules.md).
        path: where in the request, as the API writes it (`messages.3.content.0`); "" when the API names no place.
        message: what is wrong, one sentence for the person.
        api_error: the API's own sentence; "" when no text is known.
        code: the finding code, the same for every violation of one kind.
        severity: see `Severity`.
        ids: tool ids it is about, in order.
        places: every block it is about.
        details: further facts by name, JSON values only.
    """

    rule: str
    path: str
    message: str
    api_error: str
    code: str
    severity: Severity = "error"
    ids: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Repair:
    """One way to mend a finding.

    Attributes:
        name: what `--accept FINDING=NAME` takes.
        title: what it does, for the person.
        default: taken when the person chooses nothing.
        reason: why it stands at this rank.
        changes_file: False for advice (nothing is written).
    """

    name: str
    title: str
    default: bool = False
    reason: str = ""
    changes_file: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the doctor found, with the places, the cause as far as the file shows it, and the ways out.

    Attributes:
        code: the kind of finding (resources/docs/findings.md explains each).
        rule: R01 … R40, or "" for a fault of the records that no API rule names.
        severity: see `Severity`.
        message: what is wrong, one sentence.
        api_error: the API's exact sentence, "" when the API would say nothing.
        wire: path in the request as stored, "" when the fault has no place there.
        lines: 1-based line numbers, ascending.
        ids: tool ids.
        records: 0-based record indices, in the order of `lines`.
        blocks: (record, block) of every block it is about, in the order of the violation's places.
        path: the field inside the record (`message.content[0].content`), "" for the record as a whole.
        repairs: best first.
        why: how it came about when the file shows it, one sentence; else "".
        clients: what each client generation does with it, by version.
        details: further facts by name (JSON values only); the command line shows them beside the other keys.
    """

    code: str
    rule: str
    severity: Severity
    message: str
    api_error: str = ""
    wire: str = ""
    lines: tuple[int, ...] = ()
    ids: tuple[str, ...] = ()
    records: tuple[int, ...] = ()
    blocks: tuple[tuple[int, int], ...] = ()
    path: str = ""
    repairs: tuple[Repair, ...] = ()
    why: str = ""
    clients: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name of this one finding for `--accept`: code and first id, else code and first line, else the wire."""
        where = self.ids[0] if self.ids else self.lines[0] if self.lines else self.wire
        return f"{self.code}:{where}" if where != "" else self.code

    @property
    def default_repair(self) -> Repair | None:
        """The repair that is taken when the person chooses nothing, or None."""
        return next((repair for repair in self.repairs if repair.default), None)

    def as_json(self) -> dict[str, Any]:
        """The finding with the keys of cli.md first and further facts after them."""
        return {
            "code": self.code,
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "api_error": self.api_error,
            "wire": self.wire,
            "lines": list(self.lines),
            "ids": list(self.ids),
            "repairs": [
                {"name": r.name, "title": r.title, "default": r.default, "reason": r.reason} for r in self.repairs
            ],
            "key": self.key,
            "path": self.path,
            "why": self.why,
            "clients": dict(self.clients),
            **self.details,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the doctor found in one session, for one client generation."""

    client: str
    findings: tuple[Finding, ...]

    def errors(self) -> tuple[Finding, ...]:
        """The findings of severity error, in order."""
        return tuple(f for f in self.findings if f.severity == "error")
