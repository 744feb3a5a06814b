"""Fields of raw profiles of any kind: how each one's values become numbers."""

from topstory.extras import require

require("features")
