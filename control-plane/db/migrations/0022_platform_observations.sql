-- Platform table: evidence about the platform itself, which counts for the nodes of all organizations. Like evidence about
-- nodes: an observation that is repeated unchanged moves `seen_at`, and the last changes of each kind are kept.
CREATE TABLE platform_observations (
  id          uuid PRIMARY KEY,
  kind        text NOT NULL,
  value       text NOT NULL,
  detail      json,
  observed_at timestamptz NOT NULL,
  seen_at     timestamptz NOT NULL,
  -- Null: nothing newer of this kind.
  replaced_at timestamptz,
  CHECK (seen_at >= observed_at)
);
CREATE UNIQUE INDEX platform_observations_newest ON platform_observations (kind) WHERE replaced_at IS NULL;
CREATE INDEX platform_observations_history ON platform_observations (kind, observed_at DESC);
GRANT SELECT, INSERT, UPDATE (seen_at, detail, replaced_at), DELETE ON platform_observations TO holdfast_system;
