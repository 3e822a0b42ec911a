"""What is done with graphs as a whole."""
