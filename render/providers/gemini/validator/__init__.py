"""What the Gemini API refuses; a room apart from the encoder, so that neither believes the other."""
