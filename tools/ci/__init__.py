"""What has to pass: what a change can reach in full, and a sample of the rest that turns."""
