"""What a change has to pass: everything that it can reach, and a sample of the rest."""
