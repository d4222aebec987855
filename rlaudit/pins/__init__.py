"""Where a project pins vLLM or a framework: what a pin looks like, and the kinds of file that have one."""
