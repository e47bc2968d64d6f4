"""Which process holds something, and whether it still runs."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path

__all__ = ["is_running", "this_process"]


def this_process() -> dict[str, str]:
    """What identifies this process among all processes of all machines, as far as the system tells.

    Returns
    -------
    "machine" (a container is one of its own), "pid", and "started", which distinguishes processes of one number
    """
    pid = str(os.getpid())
    return {"machine": _machine(), "pid": pid, "started": _started(pid)}


def is_running(process: Mapping[str, str]) -> bool | None:
    """Whether a process still runs; None if it is, or was, on another machine or in another container."""
    if dict(process) == this_process():
        return True
    if process.get("machine") != _machine() or os.name == "nt":  # where os.kill would end the process
        return None
    pid = process["pid"]
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        pass
    return _started(pid) == process["started"]


def _machine() -> str:
    """The boot and the process namespace, within which process numbers are unique."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return platform.node()


def _started(pid: str) -> str:
    """The time at which a process started, or "" where the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]  # the 22nd field; the second, a name in parentheses, may hold spaces
