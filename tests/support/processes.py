"""The process that answers for a JVM, and the ports on which processes listen, as Linux tells."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


def helpers(jvm: int) -> list[int]:
    """The running Python processes of a JVM that answer its rules."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (place / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == jvm and state != "Z" and b"hedgerow.tables.serve" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


def variables(process: int) -> dict[str, str]:
    """The environment that a process was started with."""
    texts = Path(f"/proc/{process}/environ").read_text().split("\0")
    return dict(text.split("=", 1) for text in texts if "=" in text)


def listening(process: int) -> list[tuple[str, int]]:
    """The addresses, as Linux writes them, and the ports on which a process listens."""
    own = set()
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            own.add(os.readlink(link))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and f"socket:[{words[9]}]" in own:
                address, _, port = words[1].rpartition(":")
                found.append((address, int(port, 16)))
    return found


def py4j_answer(port: int, secret: str | None) -> str:
    """What a gateway answers to a program that looks up the package `java`; empty if it closes the connection."""
    command = "r\nu\njava\nrj\ne\n"
    with socket.create_connection(("127.0.0.1", port), timeout=0.5) as connection, suppress(OSError):
        if secret is not None:
            connection.sendall(f"A\n{secret}\n".encode())
            connection.recv(100)
        connection.sendall(command.encode())
        return connection.recv(100).decode(errors="replace")
    return ""
