"""What a caller gives, looked at before anything is done with it."""
