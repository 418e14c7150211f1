"""A recorded session through the engine, call by call, and what it would have cost."""
