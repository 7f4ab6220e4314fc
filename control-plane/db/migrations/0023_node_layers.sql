-- Management, workload and user access beside the causes, so that lists read one row of a node.
ALTER TABLE node_verdicts
  ADD COLUMN management text NOT NULL DEFAULT 'unknown' CHECK (management IN ('working', 'impaired', 'unknown')),
  ADD COLUMN workload   text NOT NULL DEFAULT 'unknown' CHECK (workload IN ('working', 'impaired', 'unknown')),
  ADD COLUMN access     text NOT NULL DEFAULT 'unknown' CHECK (access IN ('working', 'impaired', 'unknown'));
-- Every verdict is made again, with what lists show of it.
ALTER TABLE node_verdicts NO FORCE ROW LEVEL SECURITY;
UPDATE node_verdicts SET review_at = now();
ALTER TABLE node_verdicts FORCE ROW LEVEL SECURITY;

-- The id of an agent's record may follow its finding.
GRANT UPDATE (correlation_id) ON node_observations TO holdfast_app, holdfast_system;

-- Nodes with tasks that were not taken or not answered, until one is: few, if any.
CREATE INDEX node_observations_of_stuck_tasks ON node_observations (node_id)
  WHERE replaced_at IS NULL AND value IN ('past_expiry', 'past_lease');
