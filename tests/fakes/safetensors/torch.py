"""Can be imported, which is all that the health check of an interpreter asks of it."""
