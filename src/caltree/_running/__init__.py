"""Long work: threads that can be stopped, and progress."""
