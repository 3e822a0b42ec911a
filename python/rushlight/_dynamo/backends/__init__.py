"""Back ends: what runs captured graphs."""
