"""TF Lite, which LiteRT runs."""
