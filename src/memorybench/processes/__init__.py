"""Child processes: started with a deadline and an output limit, and always ended."""
