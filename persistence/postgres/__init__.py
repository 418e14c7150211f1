"""The store for many machines; `persistence` exports the public names."""
