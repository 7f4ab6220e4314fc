-- Recovery bundles: how an operator brings back a node that cannot recover by itself.

-- The hash of a bundle's secret only. A bundle works until it is used, expires or is revoked.
CREATE TABLE recovery_bundles (
  id              uuid PRIMARY KEY,
  org_id          uuid NOT NULL,
  node_id         uuid NOT NULL,
  -- Counts up over all bundles of the node.
  seq             integer NOT NULL CHECK (seq > 0),
  secret_hash     bytea NOT NULL UNIQUE,
  -- Of everything that is done with it.
  correlation_id  text NOT NULL,
  created_by      uuid REFERENCES users,
  creator_name    text NOT NULL,
  -- The API token that it was created with.
  parent_id       uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL,
  used_at         timestamptz,
  -- SHA-256 of the public key that used it: the same key gets the same answer again, another one nothing.
  used_key_sha256 bytea,
  revoked_at      timestamptz,
  -- As the node reported it: when it was applied, by the host's clock, and what it changed.
  applied_at      timestamptz,
  applied         jsonb,
  UNIQUE (node_id, seq),
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  CHECK ((used_at IS NULL) = (used_key_sha256 IS NULL)),
  CHECK ((applied_at IS NULL) = (applied IS NULL)),
  -- Only a node that was recovered with it can report it.
  CHECK (applied_at IS NULL OR used_at IS NOT NULL)
);
CREATE INDEX recovery_bundles_newest ON recovery_bundles (org_id, id DESC);
ALTER TABLE recovery_bundles ENABLE ROW LEVEL SECURITY;
ALTER TABLE recovery_bundles FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON recovery_bundles TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON recovery_bundles TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (revoked_at) ON recovery_bundles TO holdfast_app;
GRANT SELECT, UPDATE (used_at, used_key_sha256, revoked_at, applied_at, applied) ON recovery_bundles TO holdfast_system;
