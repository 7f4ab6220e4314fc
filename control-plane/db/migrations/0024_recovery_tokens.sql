-- Recovery tokens: how a node whose certificate is no longer accepted gets a new identity by itself.

-- Hashes only. A token works from its issue until it expires, is revoked, or the node has shown a newer one.
CREATE TABLE recovery_tokens (
  node_id         uuid NOT NULL,
  -- Counts up over all tokens of the node.
  seq             bigint NOT NULL CHECK (seq > 0),
  org_id          uuid NOT NULL,
  -- The environment profile that it works for.
  profile         text NOT NULL,
  secret_hash     bytea NOT NULL UNIQUE,
  issued_at       timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL,
  -- When the node first showed that it has it.
  held_at         timestamptz,
  used_at         timestamptz,
  -- SHA-256 of the public key that used it: the same key gets the same answer again, another one nothing.
  used_key_sha256 bytea,
  -- When it was presented although the node had shown a newer one.
  replayed_at     timestamptz,
  revoked_at      timestamptz,
  -- When it was counted as expired.
  expired_at      timestamptz,
  PRIMARY KEY (node_id, seq),
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  CHECK ((used_at IS NULL) = (used_key_sha256 IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX recovery_tokens_expiry ON recovery_tokens (expires_at);
ALTER TABLE recovery_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE recovery_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON recovery_tokens TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON recovery_tokens TO holdfast_system USING (true);
GRANT SELECT, UPDATE (revoked_at) ON recovery_tokens TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (held_at, used_at, used_key_sha256, replayed_at, revoked_at, expired_at), DELETE
  ON recovery_tokens TO holdfast_system;

-- Issues and expiries of one node on one day, until they are in the audit as one event.
CREATE TABLE recovery_token_days (
  node_id uuid NOT NULL,
  org_id  uuid NOT NULL,
  day     date NOT NULL,
  issued  integer NOT NULL DEFAULT 0,
  expired integer NOT NULL DEFAULT 0,
  PRIMARY KEY (node_id, day),
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id)
) WITH (fillfactor = 70);
ALTER TABLE recovery_token_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE recovery_token_days FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON recovery_token_days TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON recovery_token_days TO holdfast_system USING (true);
GRANT SELECT ON recovery_token_days TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (issued, expired), DELETE ON recovery_token_days TO holdfast_system;

ALTER TABLE node_certificates DROP CONSTRAINT node_certificates_issued_for_check;
ALTER TABLE node_certificates ADD CONSTRAINT node_certificates_issued_for_check
  CHECK (issued_for IN ('enrollment', 'renewal', 'recovery'));
