"""The machine: its accelerators, their drivers, and who uses them."""
