"""What the terminal and other programs send: the command gets it, and gets it once."""

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import termios
from pathlib import Path

import pytest
from recorded_commands import environment, python, record_words

# Counts a signal, and ends at SIGUSR1 with the count. Signals that wait are taken in the order of their numbers, by
# rlaudit as by the command, and SIGUSR1 is behind SIGINT and SIGHUP: what comes twice has come by then.
COUNTS = """
import os, signal, sys
count = 0
signals = {{signal.{signal}, signal.SIGUSR1, signal.SIGALRM}}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("ready", flush=True)
while (arrived := signal.sigwait(signals)) != signal.SIGUSR1:
    if arrived == signal.SIGALRM:
        os.killpg(0, signal.{signal})
        continue
    count += 1
    print("counted", flush=True)
print("count", count, flush=True)
sys.exit(20 + count)
"""


@contextlib.contextmanager
def started(tmp_path, *words, **options):
    """Start a recorded command; its output is read line by line. Nothing of it outlives a test that fails."""
    running = subprocess.Popen(
        record_words(tmp_path, "--into", "out", "--", *words),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        **options,
    )
    try:
        assert running.stdout.readline() == "ready\n"
        yield running
    finally:
        if running.poll() is None:
            for pid in (*children(running.pid), running.pid):
                os.kill(pid, signal.SIGKILL)
            running.wait()
        running.stdout.close()


def counting(name, tmp_path, **options):
    return started(tmp_path, *python(COUNTS.format(signal=name)), **options)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"])
def test_what_is_sent_to_rlaudit_alone_reaches_the_command(name, tmp_path):
    with counting(name, tmp_path) as running:
        running.send_signal(getattr(signal, name))
        assert running.stdout.readline() == "counted\n"
        running.send_signal(signal.SIGUSR1)
        assert running.stdout.readline() == "count 1\n"
        assert running.wait() == 21


def test_a_command_that_ends_by_a_passed_signal_ends_as_without_rlaudit(tmp_path):
    with started(tmp_path, "sh", "-c", "echo ready; exec sleep 600") as running:
        running.send_signal(signal.SIGTERM)
        assert running.wait() == 128 + signal.SIGTERM


def test_ctrl_c_reaches_the_command_once_and_rlaudit_waits_for_its_end(tmp_path):
    terminal, end = pty.openpty()

    def take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with counting("SIGINT", tmp_path, stdin=end, start_new_session=True, preexec_fn=take_terminal) as running:
        with held(running):
            os.write(terminal, b"\x03")
            assert running.stdout.readline() == "counted\n"
        running.send_signal(signal.SIGUSR1)
        assert running.stdout.readline() == "count 1\n"
        assert running.wait() == 21
    os.close(terminal)
    os.close(end)


def test_a_signal_that_the_command_sends_to_its_whole_group_does_not_come_back(tmp_path):
    with counting("SIGHUP", tmp_path, process_group=0) as running:
        with held(running):
            os.kill(*children(running.pid), signal.SIGALRM)
            assert running.stdout.readline() == "counted\n"
        running.send_signal(signal.SIGUSR1)
        assert running.stdout.readline() == "count 1\n"
        assert running.wait() == 21


def test_a_stopped_command_stops_rlaudit_and_both_go_on(tmp_path):
    # In a process group of its own, as a shell starts a job.
    with counting("SIGUSR2", tmp_path, process_group=0) as running:
        running.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(running.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert states(running.pid) == {"T"}
        os.killpg(running.pid, signal.SIGCONT)
        running.send_signal(signal.SIGUSR2)
        assert running.stdout.readline() == "counted\n"
        running.send_signal(signal.SIGUSR1)
        assert running.wait() == 21


def test_a_command_that_is_stopped_by_hand_leaves_rlaudit_waiting(tmp_path):
    with counting("SIGUSR2", tmp_path) as running:
        (child,) = children(running.pid)
        os.kill(child, signal.SIGSTOP)
        os.waitid(os.P_PID, running.pid, os.WSTOPPED | os.WNOHANG)
        os.kill(child, signal.SIGCONT)
        running.send_signal(signal.SIGUSR1)
        assert running.stdout.readline() == "count 0\n"
        assert running.wait() == 20


@contextlib.contextmanager
def held(running):
    """Stop rlaudit alone, so that it passes on what it gets after the command has dealt with it."""
    running.send_signal(signal.SIGSTOP)
    os.waitpid(running.pid, os.WUNTRACED)
    yield
    running.send_signal(signal.SIGCONT)


def children(pid):
    return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def states(pid):
    """Return the states of a process and its children, once they have settled."""
    found = set()
    while found != {"T"}:
        found = set()
        for one in (pid, *children(pid)):
            found.add(Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[0])
    return found
