"""One window for each user: a second start hands its files to the first and ends."""

from __future__ import annotations

import getpass
import hashlib
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from compaction.data_folder import config_folder

NEW_WINDOW_VARIABLE = "COMPACTOSCOPE_NEW_WINDOW"
"""Environment variable: when set and not empty, this start opens a window of its own, whatever the settings say."""

_CONNECT_MILLISECONDS = 300
_ANSWER_MILLISECONDS = 3000
_LONGEST_MESSAGE = 1 << 20
_LONGEST_TOKEN = 256
_ANSWER = b"ok\n"
log = logging.getLogger("single_instance")


def server_name() -> str:
    """The name both starts meet under: one for each user and each configuration folder."""
    identity = f"{getpass.getuser()}\n{config_folder()}".encode()
    return f"compactoscope-{hashlib.sha256(identity).hexdigest()[:24]}"


def hand_over(paths: Sequence[str], name: str = "") -> bool:
    """Give the files to a window that is open already; False when there is none (or standard input is among them).

    Costs about 0.1 ms when no window is there.
    """
    if "-" in paths or os.environ.get(NEW_WINDOW_VARIABLE):
        return False
    socket = QLocalSocket()
    socket.connectToServer(name or server_name())
    if not socket.waitForConnected(_CONNECT_MILLISECONDS):
        return False
    token = os.environ.get("XDG_ACTIVATION_TOKEN") or os.environ.get("DESKTOP_STARTUP_ID") or ""
    message = {"paths": [str(Path(path).absolute()) for path in paths], "token": token}
    socket.write(json.dumps(message).encode() + b"\n")
    answered = socket.waitForBytesWritten(_ANSWER_MILLISECONDS) and socket.waitForReadyRead(_ANSWER_MILLISECONDS)
    accepted = answered and bytes(socket.readAll().data()) == _ANSWER
    socket.disconnectFromServer()
    return bool(accepted)


class InstanceServer(QObject):
    """Listens for later starts.

    Signals:
        files_received(list[str]): absolute paths to open; [] asks for the window only.
    """

    files_received = Signal(object)

    def __init__(self, parent: QObject | None = None, name: str = "") -> None:
        super().__init__(parent)
        self._name = name or server_name()
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def listen(self) -> bool:
        """Become the window that later starts find; False when that did not work (they open windows of their own).

        A socket that a killed program left behind is removed first: nobody answers on it, `hand_over` has just tried.
        """
        if self._server.listen(self._name):
            return True
        QLocalServer.removeServer(self._name)
        return self._server.listen(self._name)

    def close(self) -> None:
        """Stop listening and remove the socket."""
        self._server.close()

    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.setReadBufferSize(_LONGEST_MESSAGE)
            socket.readyRead.connect(self._on_data)
            socket.disconnected.connect(socket.deleteLater)
            if socket.bytesAvailable():
                self._read(socket)

    def _on_data(self) -> None:
        socket = self.sender()
        if isinstance(socket, QLocalSocket):
            self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        if not socket.canReadLine():
            if socket.bytesAvailable() >= _LONGEST_MESSAGE:
                socket.abort()
            return
        message = _message_of(bytes(socket.readLine().data()))
        if message is None:
            log.warning("a message that is none was dropped")
            socket.abort()
            return
        paths, token = message
        if token:
            # Wayland lets a window come to the front only with the token of the start that asked for it; Qt takes it
            # from here.
            os.environ["XDG_ACTIVATION_TOKEN"] = token
        socket.write(_ANSWER)
        socket.flush()
        self.files_received.emit(paths)


def _message_of(line: bytes) -> tuple[list[str], str] | None:
    """The paths and the activation token of a message, None when it is no message of ours."""
    try:
        message: Any = json.loads(line)
    except ValueError:
        return None
    paths = message.get("paths") if isinstance(message, dict) else None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        return None
    token = message.get("token")
    usable = isinstance(token, str) and len(token) <= _LONGEST_TOKEN and token.isascii() and token.isprintable()
    return paths, token if usable else ""
