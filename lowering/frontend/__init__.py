"""What a caller hands in and gets back: arguments, symbolic shapes, gradients."""
