"""What the Messages API refuses, checked before a request is sent."""
