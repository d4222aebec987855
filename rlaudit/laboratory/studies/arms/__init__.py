"""Arms: engines that differ in one factor at a time, each with one set of weights."""
