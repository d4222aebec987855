"""A run of arms: its layers are read as those of a diagnosis."""

from rlaudit.report.rendering.verdict_blocks.diagnose import block

BLOCK = block
