"""What functorch tries out."""
