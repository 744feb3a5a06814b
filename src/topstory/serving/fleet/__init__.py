"""Several machines: front ends anywhere, one learner, and PostgreSQL between them."""

from topstory.extras import require

require("serve")
require("postgres")
