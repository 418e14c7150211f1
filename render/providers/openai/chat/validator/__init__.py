"""What Chat Completions refuses; a room apart from the encoder, so that neither believes the other."""
