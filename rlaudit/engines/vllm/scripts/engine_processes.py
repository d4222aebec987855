"""The processes that an engine started, and their sudden end. Loaded by update_weights.py.

Python 3.9 syntax, standard library only.
"""

import os
import signal


def kill_below(pid):
    """Kill every process below `pid`; returns how many there were."""
    victims = children(pid)
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(victims)


def children(pid):
    """Every process below `pid` (Linux)."""
    below, parents = [], {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry) as stat:
                    parents[int(entry)] = int(stat.read().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    frontier = [pid]
    while frontier:
        frontier = [child for child, parent in parents.items() if parent in frontier]
        below += frontier
    return below
