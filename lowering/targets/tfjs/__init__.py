"""TF.js."""
