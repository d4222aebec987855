"""The pins of vLLM or a framework in a project: what a pin looks like, and the kinds of file that have one."""
