"""Projected users and articles to soft memberships in a few clusters."""
