"""Images: shape (height, width, channels), or (batch, height, width, channels)."""
