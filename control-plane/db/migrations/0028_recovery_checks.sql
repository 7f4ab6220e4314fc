-- An incident whose repair concerned identity, trust, addresses or a quarantine ends only when the recovery is verified.
ALTER TABLE incidents
  -- What proves the recovery must have been observed later. Null: nothing has to be proved.
  ADD COLUMN proof_after    timestamptz,
  -- No cause is left, and the checks are not complete; null: not so far.
  ADD COLUMN checking_since timestamptz,
  -- The checklist that ended it.
  ADD COLUMN proof          json,
  ADD CHECK (checking_since IS NULL OR proof_after IS NOT NULL),
  ADD CHECK (proof IS NULL OR (proof_after IS NOT NULL AND closed_at IS NOT NULL));
-- Few, if any: read every few seconds.
CREATE INDEX incidents_checking ON incidents (node_id) WHERE checking_since IS NOT NULL AND closed_at IS NULL;

ALTER TABLE node_verdicts DROP CONSTRAINT node_verdicts_management_check;
ALTER TABLE node_verdicts ADD CONSTRAINT node_verdicts_management_check
  CHECK (management IN ('working', 'impaired', 'recovering', 'unknown'));

ALTER TABLE tasks
  -- The instance of the agent that reported the end; null: nobody did, or it ended before this was recorded.
  ADD COLUMN reported_by uuid,
  -- The task that this one repeats, which can be repeated once. Not a foreign key: older tasks are removed earlier.
  ADD COLUMN replays     uuid;
CREATE UNIQUE INDEX tasks_replays ON tasks (replays) WHERE replays IS NOT NULL;

-- A person quotes the id of what was observed; the story that it belongs to is found by it.
CREATE INDEX node_observations_correlation ON node_observations (correlation_id) WHERE correlation_id IS NOT NULL;
