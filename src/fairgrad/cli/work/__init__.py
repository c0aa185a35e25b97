"""What the commands do once their options are read; may import what it needs."""
