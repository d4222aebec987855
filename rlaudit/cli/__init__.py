"""The command line: arguments in, one call, result out."""
