"""The tables between a fleet's front ends and its learner, and the function that writes to them.

A front end is a *node*. It hands in decisions and payoffs in numbered batches, one transaction
each, which the row of the node serialises. So whoever sees one record of a node sees all that it
handed in before: the last number is a safe cut. Numbers that all nodes share would not be: they are
given before the commit, so a lower one may appear after a higher one was read.
"""

EDIT_LOCK = 0x74535445  # "tSTE": decisions hold it shared while they are written, edits alone

# What became of a row: see `hand_in`.
MADE, EARLIER, OUTDATED, NOTHING, CONFLICT, UNKNOWN, COMING = range(7)

NODE_BITS, SEQ_BITS = 20, 42  # of an origin, above which is one more bit
FIRST_ORIGIN = 1 << (NODE_BITS + SEQ_BITS)

TABLES = """
ALTER TABLE topstory.journal ADD COLUMN IF NOT EXISTS origin BIGINT;  -- of a fleet's record
-- The database itself refuses to take a front end's record twice.
CREATE UNIQUE INDEX IF NOT EXISTS journal_origin
    ON topstory.journal (origin) WHERE origin IS NOT NULL;
-- One row for each start of a front end: the last number and the last batch that it handed in, and
-- what became of that batch, in case it is sent again.
CREATE TABLE IF NOT EXISTS topstory.node (
    id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL, seq BIGINT NOT NULL DEFAULT 0, batch BIGINT NOT NULL DEFAULT 0,
    first BIGINT, codes SMALLINT[], refs BIGINT[]
) WITH (fillfactor = 50);
-- Of decisions that were made while the database could not be reached, and come later.
ALTER TABLE topstory.node ADD COLUMN IF NOT EXISTS late BOOLEAN NOT NULL DEFAULT false;
-- What front ends decided and were paid, kept until nobody can ask for it again.
CREATE TABLE IF NOT EXISTS topstory.inbox (
    node INTEGER NOT NULL, seq BIGINT NOT NULL,
    at BIGINT NOT NULL,       -- microseconds since 1970
    decision BIGINT,          -- of a payoff: the origin of its decision, or its number
    payoff DOUBLE PRECISION,
    request TEXT,             -- of a decision: the client's id
    body BYTEA NOT NULL,      -- the record, as MessagePack
    PRIMARY KEY (node, seq)
);
-- The database itself refuses a second payoff, and a second decision for a request.
CREATE UNIQUE INDEX IF NOT EXISTS inbox_payoff
    ON topstory.inbox (decision) WHERE decision IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS inbox_request
    ON topstory.inbox (request) WHERE request IS NOT NULL;
CREATE INDEX IF NOT EXISTS inbox_at ON topstory.inbox (at);
-- The last record of the batch that last edited each pool: older views decide no more.
CREATE TABLE IF NOT EXISTS topstory.edition (pool TEXT PRIMARY KEY, number BIGINT NOT NULL);
-- What scoring reads, as the learner published it last.
CREATE TABLE IF NOT EXISTS topstory.model (
    sole BOOLEAN PRIMARY KEY DEFAULT true CHECK (sole),
    version BIGINT NOT NULL, epoch BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL, body BYTEA NOT NULL
);
-- What every machine needs: the configuration, secrets, the policies that pools began with.
CREATE TABLE IF NOT EXISTS topstory.shared (name TEXT PRIMARY KEY, value BYTEA NOT NULL);
-- Requests that only the learner can answer, and its answers.
CREATE TABLE IF NOT EXISTS topstory.call (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, node INTEGER NOT NULL,
    number BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    epoch BIGINT, request BYTEA NOT NULL, answer BYTEA
);
-- Signs of life of the learner of this epoch, beside all that it writes: one may take long.
CREATE TABLE IF NOT EXISTS topstory.lease (
    sole BOOLEAN PRIMARY KEY DEFAULT true CHECK (sole), term BIGINT NOT NULL, beat BIGINT NOT NULL
);
"""

# One round trip, one transaction, one commit: whatever happens to the client meanwhile, no lock is
# kept. Statements of a function each see what was committed before them, also while it waited.
HAND_IN = f"""
CREATE OR REPLACE FUNCTION topstory.hand_in(
    p_node INTEGER, p_batch BIGINT, p_at BIGINT, p_since BIGINT,
    d_pool TEXT[], d_edition BIGINT[], d_request TEXT[], d_body BYTEA[],
    p_decision BIGINT[], p_payoff DOUBLE PRECISION[], p_body BYTEA[],
    OUT o_first BIGINT, OUT o_codes SMALLINT[], OUT o_refs BIGINT[]
) LANGUAGE plpgsql SET search_path = topstory AS $$
DECLARE
    held node%ROWTYPE;
    decisions INTEGER := cardinality(d_body);
    payoffs INTEGER := cardinality(p_body);
    inserted INTEGER;
    codes SMALLINT[];
    refs BIGINT[];
BEGIN
    SELECT * INTO held FROM node WHERE id = p_node FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'node % is unknown', p_node;
    END IF;
    IF held.batch = p_batch THEN  -- it was sent before, and arrived
        o_first := held.first; o_codes := held.codes; o_refs := held.refs;
        RETURN;
    END IF;
    IF held.batch <> p_batch - 1 THEN
        RAISE EXCEPTION 'batch % of node % came after batch %', p_batch, p_node, held.batch;
    END IF;
    o_codes := '{{}}'; o_refs := '{{}}';
    IF decisions > 0 THEN
        PERFORM pg_advisory_xact_lock_shared({EDIT_LOCK});
        -- A request's id may be used again once the window of its decision is over.
        UPDATE inbox SET request = NULL WHERE request = ANY (d_request) AND at < p_since;
        INSERT INTO inbox (node, seq, at, request, body)
        SELECT p_node, held.seq + g.place, p_at, g.request, g.body
        FROM unnest(d_pool, d_edition, d_request, d_body)
            WITH ORDINALITY AS g (pool, edition, request, body, place)
        WHERE g.body IS NOT NULL
            AND g.edition >= coalesce((SELECT e.number FROM edition e WHERE e.pool = g.pool), 0)
            AND (g.request IS NULL OR NOT EXISTS (
                SELECT FROM journal j
                WHERE j.request = g.request AND j.at >= p_since AND j.origin IS NULL))
        ORDER BY g.request, g.place  -- all nodes in one order: no deadlock
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS inserted = ROW_COUNT;
        IF inserted = decisions THEN
            o_codes := array_fill({MADE}::smallint, ARRAY[decisions]);
            o_refs := array_fill(0::bigint, ARRAY[decisions]);
        ELSE
            SELECT array_agg(CASE
                    WHEN mine.seq IS NOT NULL THEN {MADE}
                    WHEN other.seq IS NOT NULL OR old.number IS NOT NULL THEN {EARLIER}
                    WHEN g.edition < coalesce(
                        (SELECT e.number FROM edition e WHERE e.pool = g.pool), 0) THEN {OUTDATED}
                    WHEN g.body IS NULL THEN {NOTHING}
                    ELSE {OUTDATED} END::smallint ORDER BY g.place),
                array_agg(coalesce({FIRST_ORIGIN} | (other.node::bigint << {SEQ_BITS}) | other.seq,
                    old.number, 0) ORDER BY g.place)
            INTO o_codes, o_refs
            FROM unnest(d_pool, d_edition, d_request, d_body)
                WITH ORDINALITY AS g (pool, edition, request, body, place)
            LEFT JOIN inbox mine ON mine.node = p_node AND mine.seq = held.seq + g.place
            LEFT JOIN inbox other ON other.request = g.request
            LEFT JOIN LATERAL (
                SELECT j.number FROM journal j
                WHERE j.request = g.request AND j.at >= p_since AND j.origin IS NULL
                ORDER BY j.number DESC LIMIT 1) old ON true;
        END IF;
    END IF;
    IF payoffs > 0 THEN
        INSERT INTO inbox (node, seq, at, decision, payoff, body)
        SELECT p_node, held.seq + decisions + g.place, p_at, g.decision, g.payoff, g.body
        FROM unnest(p_decision, p_payoff, p_body)
            WITH ORDINALITY AS g (decision, payoff, body, place)
        WHERE g.decision < {FIRST_ORIGIN} OR EXISTS (
            SELECT FROM inbox d WHERE d.decision IS NULL
                AND d.node = (g.decision >> {SEQ_BITS} & {(1 << NODE_BITS) - 1})::integer
                AND d.seq = g.decision & {(1 << SEQ_BITS) - 1})
        ORDER BY g.decision, g.place
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS inserted = ROW_COUNT;
        IF inserted = payoffs THEN
            codes := array_fill({MADE}::smallint, ARRAY[payoffs]);
            refs := array_fill(0::bigint, ARRAY[payoffs]);
        ELSE
            SELECT array_agg(CASE
                    WHEN mine.seq IS NOT NULL THEN {MADE}
                    WHEN other.seq IS NULL AND EXISTS (
                        SELECT FROM node n WHERE n.late
                            AND n.id = (g.decision >> {SEQ_BITS} & {(1 << NODE_BITS) - 1})::integer
                            AND n.seq < g.decision & {(1 << SEQ_BITS) - 1}) THEN {COMING}
                    WHEN other.seq IS NULL THEN {UNKNOWN}
                    WHEN other.payoff = g.payoff THEN {EARLIER}
                    ELSE {CONFLICT} END::smallint ORDER BY g.place),
                array_agg(g.decision ORDER BY g.place)
            INTO codes, refs
            FROM unnest(p_decision, p_payoff, p_body)
                WITH ORDINALITY AS g (decision, payoff, body, place)
            LEFT JOIN inbox mine ON mine.node = p_node AND mine.seq = held.seq + decisions + g.place
            LEFT JOIN inbox other ON other.decision = g.decision;
        END IF;
        o_codes := o_codes || codes; o_refs := o_refs || refs;
    END IF;
    o_first := held.seq;
    UPDATE node SET seq = held.seq + decisions + payoffs, batch = p_batch,
        first = o_first, codes = o_codes, refs = o_refs
    WHERE id = p_node;
END $$;
"""
