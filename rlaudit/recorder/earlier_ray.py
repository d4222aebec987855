"""Workers of a Ray node that ran before the command. They descend from its raylet, and have the environment of that.

A program of the command works on such a node if it holds open the log that Ray's core keeps for each driver. Workers
without a job, which Ray starts in advance, may be given to any: they are taken for the command's.
Not covered: workers on other hosts, and drivers elsewhere that a Ray client talks to. Names of files, options and
variables are those of Ray 2.43 and 2.60, which were run.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from rlaudit.recorder.proc import command_line, environment_of, open_files, words_of

_SESSION = re.compile(r"--raylet_socket_name=(.*)/sockets/[^/]*")
_DRIVER = re.compile(r"(.*)/logs/python-core-driver-([0-9a-f]{8})[0-9a-f]*_\d+\.log")
# A worker's title, once it has been given an actor or a task, with the method that it runs.
_TITLE = re.compile(r"(ray::(?!IDLE\b)[^\s\0.(]+)")
_NO_JOB = "ffffffff"


@dataclass
class EarlierRay:
    """Ray nodes outside of a command, and those of their workers that may be the command's."""

    # The session's folder of each raylet.
    _raylets: dict[int, str] = field(default_factory=dict)
    _workers: dict[int, int] = field(default_factory=dict)
    # The jobs of the command's programs, by session.
    _jobs: dict[str, set[str]] = field(default_factory=dict)

    def place(self, parents: Mapping[int, int | None]) -> None:
        """Note the raylets among processes that are not of the command, and then their children.

        parents: of each process. A child may have the smaller number: process ids begin again at the largest.
        """
        for pid, parent in parents.items():
            words = words_of(command_line(pid)) if parent not in self._raylets else [""]
            if words[0].rpartition("/")[2] == "raylet":
                session = next(filter(None, map(_SESSION.fullmatch, words)), None)
                if session is not None:
                    self._raylets[pid] = session[1]
        self._workers |= {
            pid: parent for pid, parent in parents.items() if parent is not None and parent in self._raylets
        }

    def workers(self, pids: Collection[int]) -> Iterator[tuple[int, str, dict[str, str]]]:
        """Yield process id, title and environment of the workers that may work for the command's processes."""
        if not self._raylets:
            return
        for pid in pids:
            for driver_log in filter(None, map(_DRIVER.fullmatch, open_files(pid))):
                self._jobs.setdefault(driver_log[1], set()).add(driver_log[2])
        for pid, raylet in list(self._workers.items()):
            jobs = self._jobs.get(self._raylets[raylet])
            line = command_line(pid)
            if not line:
                del self._workers[pid]
            title = _TITLE.match(line.decode(errors="replace")) if jobs else None
            environment = environment_of(pid) if title else None
            # The raylet's own agents have a title as well, and no job.
            if title and jobs and environment and environment.get("RAY_JOB_ID") in {*jobs, _NO_JOB}:
                yield pid, title[1], environment
