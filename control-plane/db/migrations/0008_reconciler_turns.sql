-- Platform table: whose turn it is, of all workers, to run each reconciler. One row each; a turn is taken by
-- one conditional UPDATE.
CREATE TABLE reconciler_turns (
  name     text PRIMARY KEY,
  -- The worker that had the last turn and has the next one while it comes in time; null: whoever comes first.
  taken_by uuid,
  taken_at timestamptz NOT NULL DEFAULT now(),
  turns    bigint NOT NULL DEFAULT 1
);
GRANT SELECT, INSERT, UPDATE ON reconciler_turns TO holdfast_system;
