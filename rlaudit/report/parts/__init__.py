"""What a report has beside the records of those that judge, command by command."""
