"""What the report of each command consists of, as an outline; a file is named after its command."""
