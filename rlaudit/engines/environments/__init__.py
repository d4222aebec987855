"""Where engines and trainers live: interpreters that are built, or given, and what they hold."""
