"""Tests; directories are named as those of `lowering`, or as what they test."""
