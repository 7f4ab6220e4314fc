-- Nodes: identity, enrollment, certificates, presence, diagnostics; environment profiles; task keys.

CREATE TABLE nodes (
  id                uuid PRIMARY KEY,
  org_id            uuid NOT NULL REFERENCES organizations,
  name              text NOT NULL CHECK (length(name) BETWEEN 1 AND 63),
  status            text NOT NULL DEFAULT 'enrolling'
                    CHECK (status IN ('enrolling', 'active', 'draining', 'quarantined', 'retired')),
  status_reason     text,
  status_changed_at timestamptz NOT NULL DEFAULT now(),
  -- Set while no certificate of the node is accepted. A token made for the node ends it.
  revoked_at        timestamptz,
  created_at        timestamptz NOT NULL DEFAULT now(),
  UNIQUE (org_id, id),
  CHECK (status <> 'retired' OR revoked_at IS NOT NULL),
  CHECK (revoked_at IS NULL OR status IN ('quarantined', 'retired'))
);
-- The name of a retired node is free again: a machine may come back as a new node.
CREATE UNIQUE INDEX nodes_name ON nodes (org_id, name) WHERE status <> 'retired';
CREATE INDEX nodes_newest ON nodes (org_id, id DESC);
-- Replicas ask once a second what changed, in case a notification was lost.
CREATE INDEX nodes_changed ON nodes (status_changed_at);
ALTER TABLE nodes ENABLE ROW LEVEL SECURITY;
ALTER TABLE nodes FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON nodes TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON nodes TO holdfast_system USING (true);
GRANT SELECT, UPDATE (name, status, status_reason, status_changed_at, revoked_at) ON nodes TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (status, status_reason, status_changed_at, revoked_at) ON nodes TO holdfast_system;

-- What the last heartbeat said. Apart from nodes, because it is rewritten every few seconds: no
-- index but the key, and room in each page, so that an update stays within its page.
CREATE TABLE node_presence (
  node_id        uuid PRIMARY KEY,
  org_id         uuid NOT NULL,
  heartbeat_at   timestamptz NOT NULL,
  instance_id    uuid NOT NULL,
  boot_id        text NOT NULL,
  clock_skew_ms  integer NOT NULL,
  heartbeat      json NOT NULL,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id)
) WITH (fillfactor = 50);
ALTER TABLE node_presence ENABLE ROW LEVEL SECURITY;
ALTER TABLE node_presence FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON node_presence TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON node_presence TO holdfast_system USING (true);
GRANT SELECT ON node_presence TO holdfast_app;
GRANT SELECT, INSERT, UPDATE ON node_presence TO holdfast_system;

CREATE TABLE enrollment_tokens (
  id               uuid PRIMARY KEY,
  org_id           uuid NOT NULL REFERENCES organizations,
  -- A pairing token works once; a bootstrap token again and again, for its one node.
  kind             text NOT NULL CHECK (kind IN ('pairing', 'bootstrap')),
  secret_hash      bytea NOT NULL UNIQUE,
  -- Only this node may use it, to be re-keyed. A bootstrap token for a node that is not there yet has it
  -- from its first use on, for ever.
  node_id          uuid,
  node_name        text,
  created_by       uuid REFERENCES users,
  creator_name     text NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT now(),
  expires_at       timestamptz NOT NULL,
  revoked_at       timestamptz,
  -- The last time, and how often.
  used_at          timestamptz,
  uses             integer NOT NULL DEFAULT 0,
  -- SHA-256 of the public key that last used it: the same key gets the same answer again.
  used_key_sha256  bytea,
  enrolled_node_id uuid,
  -- Deferred: the token is consumed first, then its node is made.
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id) DEFERRABLE INITIALLY DEFERRED,
  FOREIGN KEY (org_id, enrolled_node_id) REFERENCES nodes (org_id, id) DEFERRABLE INITIALLY DEFERRED,
  CHECK ((used_at IS NULL) = (used_key_sha256 IS NULL)),
  CHECK ((used_at IS NULL) = (enrolled_node_id IS NULL)),
  CHECK ((used_at IS NULL) = (uses = 0)),
  CHECK (CASE kind WHEN 'pairing' THEN uses <= 1 AND (node_id IS NULL OR node_name IS NULL)
                   ELSE node_name IS NOT NULL AND (used_at IS NULL OR enrolled_node_id = node_id) END)
);
CREATE INDEX enrollment_tokens_newest ON enrollment_tokens (org_id, id DESC);
CREATE INDEX enrollment_tokens_of_user ON enrollment_tokens (created_by);
ALTER TABLE enrollment_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE enrollment_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON enrollment_tokens TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON enrollment_tokens TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (revoked_at) ON enrollment_tokens TO holdfast_app;
GRANT SELECT, UPDATE (node_id, used_at, uses, used_key_sha256, enrolled_node_id), DELETE
  ON enrollment_tokens TO holdfast_system;

CREATE TABLE node_certificates (
  serial     text PRIMARY KEY CHECK (serial ~ '^[0-9a-f]+$'),
  org_id     uuid NOT NULL,
  node_id    uuid NOT NULL,
  -- Of the public key: a repeated request for the same key gets the same certificate.
  key_sha256 bytea NOT NULL,
  chain      text NOT NULL,
  issued_for text NOT NULL CHECK (issued_for IN ('enrollment', 'renewal')),
  issued_at  timestamptz NOT NULL DEFAULT now(),
  not_before timestamptz NOT NULL,
  not_after  timestamptz NOT NULL,
  revoked_at timestamptz,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id)
);
CREATE UNIQUE INDEX node_certificates_key ON node_certificates (node_id, key_sha256);
CREATE INDEX node_certificates_newest ON node_certificates (node_id, not_after DESC);
CREATE INDEX node_certificates_expiry ON node_certificates (not_after);
ALTER TABLE node_certificates ENABLE ROW LEVEL SECURITY;
ALTER TABLE node_certificates FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON node_certificates TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON node_certificates TO holdfast_system USING (true);
GRANT SELECT, UPDATE (revoked_at) ON node_certificates TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (revoked_at), DELETE ON node_certificates TO holdfast_system;

-- The records an agent has delivered, a bounded number per node.
CREATE TABLE node_diagnostics (
  org_id      uuid NOT NULL,
  node_id     uuid NOT NULL,
  seq         bigint NOT NULL,
  record      json NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (node_id, seq),
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id)
);
ALTER TABLE node_diagnostics ENABLE ROW LEVEL SECURITY;
ALTER TABLE node_diagnostics FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON node_diagnostics TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON node_diagnostics TO holdfast_system USING (true);
GRANT SELECT ON node_diagnostics TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (record, received_at), DELETE ON node_diagnostics TO holdfast_system;

-- Platform table: where nodes find the server. A version never changes; the highest is in force.
CREATE TABLE environment_profiles (
  name       text NOT NULL,
  version    integer NOT NULL CHECK (version > 0),
  content    json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (name, version)
);
GRANT SELECT, INSERT ON environment_profiles TO holdfast_system;

-- Platform table: when each key that signs tasks does what. The keys themselves are sealed_keys: whoever can
-- only write to the database cannot make nodes trust another one. A key verifies from its creation, signs from sign_from, and verifies until verify_until.
CREATE TABLE task_signing_keys (
  kid          text PRIMARY KEY,
  created_at   timestamptz NOT NULL DEFAULT now(),
  sign_from    timestamptz NOT NULL,
  verify_until timestamptz
);
GRANT SELECT, INSERT, UPDATE (verify_until), DELETE ON task_signing_keys TO holdfast_system;

-- Agents act too, and are audited by their node.
ALTER TABLE audit_events DROP CONSTRAINT audit_events_actor_type_check;
ALTER TABLE audit_events ADD CONSTRAINT audit_events_actor_type_check
  CHECK (actor_type IN ('user', 'token', 'local_operator', 'system', 'anonymous', 'node'));
