-- Platform table: which keys verified tasks when, as a chain. Each set is signed with the keys of the set before it, so
-- that a node that was offline replays what it missed and needs to believe nobody. Rows are never changed. Whoever can
-- only write to the database cannot add one that a node accepts: the private keys are in sealed_keys.
CREATE TABLE task_key_sets (
  version    bigint PRIMARY KEY CHECK (version > 0),
  content    json NOT NULL,
  signatures json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT, INSERT ON task_key_sets TO holdfast_system;
