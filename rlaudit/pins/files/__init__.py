"""Kinds of file that pin vLLM, one file each, which binds `PIN_FILE`."""
