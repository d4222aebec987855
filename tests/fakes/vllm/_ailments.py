"""Ways to fall ill on purpose, chosen by an environment variable that the recipe of a test declares.

FAKE_VLLM_AILMENT   engine-core-dies, out-of-memory, killed, hangs, leaves-a-daemon, nan, positive
FAKE_VLLM_WHILE     a path: ill only while it exists
FAKE_VLLM_REACHED   a named pipe that is told when the ailment sets in
FAKE_VLLM_UNTIL     a path: no request is answered before it exists, which is no ailment
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CORE_DIES = """
import os, sys
print(f"(EngineCore pid={os.getpid()}) ERROR 11-21 03:38:11 [core.py:1] EngineCore failed to start.")
print(f"(EngineCore pid={os.getpid()}) ERROR 11-21 03:38:11 [core.py:1] Traceback (most recent call last):")
print(f"(EngineCore pid={os.getpid()}) ERROR 11-21 03:38:11 [core.py:1] " + sys.argv[1])
sys.exit(1)
"""
WORDS_OF_THE_CORE = {
    "engine-core-dies": "ValueError: the block size 17 is not a multiple of 16",
    "out-of-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
}
LIVE_UNTIL_KILLED = "import signal\nwhile True:\n    signal.pause()\n"


def ailment():
    """The name of what this engine suffers from, or None."""
    only_while = os.environ.get("FAKE_VLLM_WHILE")
    if only_while and not Path(only_while).exists():
        return None
    return os.environ.get("FAKE_VLLM_AILMENT")


def suffer_at_load():
    """What goes wrong before the engine is there."""
    found = ailment()
    if found in WORDS_OF_THE_CORE:
        subprocess.run([sys.executable, "-c", CORE_DIES, WORDS_OF_THE_CORE[found]], check=False)
        raise RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    if found == "leaves-a-daemon":
        # The parent in between ends at once, as an EngineCore's does when it is killed: nobody knows the rest is there.
        start = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)"
        subprocess.run([sys.executable, "-c", start, LIVE_UNTIL_KILLED], check=True)


def suffer_at_generation():
    """What goes wrong when the first request is there."""
    found = ailment()
    if found not in ("killed", "hangs"):
        return
    if found == "hangs":
        # As V1 does, with an engine process that has a session of its own.
        subprocess.Popen([sys.executable, "-c", LIVE_UNTIL_KILLED], start_new_session=True)
    reached = os.environ.get("FAKE_VLLM_REACHED")
    if reached:
        Path(reached).write_text("reached\n")
    if found == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        signal.pause()


def wait_for_its_time():
    """Return once the path exists that FAKE_VLLM_UNTIL names."""
    path = os.environ.get("FAKE_VLLM_UNTIL")
    while path and not Path(path).exists():
        time.sleep(0.01)


def altered(logprob):
    """A reported logprob, as a sick sampler reports it."""
    return {"nan": float("nan"), "positive": 0.25}.get(ailment(), logprob)
