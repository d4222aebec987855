"""Logged rollouts as token tables: read in whole sequences, whatever wrote them, without holding a file in memory."""
