"""Raw categories to a unit vector."""

from topstory.extras import require

require("features")
