"""A real PostgreSQL server for a test run, on a folder and a socket of its own."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


def server_programs() -> Path | None:
    """The folder with `initdb` and `postgres`, None where no server is installed."""
    candidates = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in candidates:
        # A link in a PATH folder lies beside nothing that initdb needs; the real folder has it all.
        program = (folder / "initdb").resolve()
        if program.exists() and (program.parent / "postgres").exists():
            return program.parent
    return None


def _identity() -> dict[str, int]:
    """The server refuses to run as root: then it runs as `postgres`, or `nobody` where there is no such user."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid}
    return {"user": 65534, "group": 65534}


@contextlib.contextmanager
def running_server(programs: Path) -> Iterator[str]:
    """Start a server in a temporary folder; yields the URL of its superuser's database; stops and removes it."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    identity = _identity()
    try:
        if identity:
            os.chown(folder, identity["user"], identity["group"])
        data = folder / "data"

        def run(*command: str | Path) -> None:
            plain = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
            subprocess.run(command, cwd=folder, env=plain, check=True, stdout=subprocess.DEVNULL, **identity)

        run(programs / "initdb", "-D", data, "-U", "owner", "-A", "trust", "-E", "UTF8", "--no-sync")
        control = [programs / "pg_ctl", "-D", data, "-w"]
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run(*control, "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql://owner@/postgres?host={folder}"
        finally:
            run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
