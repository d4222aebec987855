"""An engine process that is as hard to find and to end as vLLM's EngineCore: spawned by multiprocessing, it overwrites
its name and its environment, is deaf to SIGTERM, outlives its parent, and has a daemon in a session of its own."""

import atexit
import ctypes
import multiprocessing
import os
import signal
import subprocess
from pathlib import Path

NAME = b"VLLM::EngineCore"
PR_SET_NAME = 15
# proc_pid_stat(5): arg_start and env_end, counted behind the command's name.
ARG_START, ENV_END = 45, 48


def start():
    """Start the process; returns a function that asks it for an answer, and raises when it is gone."""
    ours, theirs = multiprocessing.Pipe()
    core = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), name="EngineCore")
    core.start()
    theirs.close()

    def ask():
        ours.send("answer")
        return ours.recv()

    def stop():
        try:
            ours.send("stop")
        except OSError:
            core.kill()

    atexit.register(stop)
    ask()
    return ask


def serve(questions):
    """What runs in the process."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Inherits the deafness.
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    multiprocessing.get_context("spawn").Lock()  # brings multiprocessing's resource tracker
    disguise()
    while True:
        try:
            asked = questions.recv()
        except EOFError:
            while True:
                signal.pause()
        if asked == "stop":
            return
        questions.send("answer")


def disguise():
    """As setproctitle does: the command line and the environment that /proc shows are overwritten."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, NAME[:15])
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[ARG_START]), int(fields[ENV_END])
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, NAME, len(NAME))
    assert b"PATH=" not in Path(f"/proc/{os.getpid()}/environ").read_bytes()
