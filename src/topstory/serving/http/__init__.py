"""The service over HTTP."""

from topstory.extras import require

require("serve")
