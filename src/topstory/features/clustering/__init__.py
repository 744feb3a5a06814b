"""Projected users and articles to soft memberships in a few clusters."""

from topstory.extras import require

require("features")
