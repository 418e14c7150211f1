"""The store of several processes on one machine; `persistence` exports what is public of it."""
