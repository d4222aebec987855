"""What a report consists of, command by command."""
