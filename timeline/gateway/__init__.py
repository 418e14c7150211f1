"""Between an agent that stays as it is and its provider."""
