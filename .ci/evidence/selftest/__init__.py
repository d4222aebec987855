"""Does the attribution name what is wrong? Faults planted in data whose truth is known, judged blind."""
