"""A job in an interpreter of its own: started, watched, ended and sealed."""
