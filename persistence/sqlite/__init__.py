"""The store for several processes on one machine; `persistence` exports the public names."""
