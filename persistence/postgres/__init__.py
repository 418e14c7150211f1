"""The store of many machines; `persistence` exports what is public of it."""
