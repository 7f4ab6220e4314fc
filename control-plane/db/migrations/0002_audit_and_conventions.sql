-- Audit, idempotency keys, rate limits, sealed keys, process heartbeats.

-- Append-only: neither role may update or delete. org_id NULL is an event of the platform itself.
CREATE TABLE audit_events (
  id             uuid PRIMARY KEY,
  org_id         uuid REFERENCES organizations,
  at             timestamptz NOT NULL DEFAULT now(),
  actor_type     text NOT NULL CHECK (actor_type IN ('user', 'token', 'local_operator', 'system', 'anonymous')),
  actor_id       uuid,
  actor_name     text NOT NULL,
  role           text NOT NULL,
  action         text NOT NULL CHECK (action ~ '^[a-z_]+\.[a-z_]+$'),
  target_type    text NOT NULL,
  target_id      text,
  target_name    text,
  result         text NOT NULL CHECK (result IN ('allowed', 'denied', 'failed')),
  reason         text,
  correlation_id text NOT NULL,
  details        jsonb NOT NULL DEFAULT '{}',
  CHECK ((result = 'allowed') = (reason IS NULL))
);
CREATE INDEX audit_events_newest ON audit_events (org_id, id DESC);
CREATE INDEX audit_events_correlation ON audit_events (correlation_id);
ALTER TABLE audit_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_events FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON audit_events TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON audit_events TO holdfast_system USING (true);
GRANT SELECT, INSERT ON audit_events TO holdfast_app, holdfast_system;

-- The answer of a create, sealed (it may hold a secret that is shown once), to be repeated for the
-- same key. org_id NULL: a create of the platform operator in no organization.
CREATE TABLE idempotency_keys (
  org_id        uuid REFERENCES organizations,
  actor         text NOT NULL,
  key           text NOT NULL,
  endpoint      text NOT NULL,
  request_hash  bytea NOT NULL,
  sealed_answer bytea,
  created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX idempotency_keys_once ON idempotency_keys
  (actor, key, coalesce(org_id, '00000000-0000-0000-0000-000000000000'));
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON idempotency_keys TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON idempotency_keys TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (sealed_answer) ON idempotency_keys TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (sealed_answer), DELETE ON idempotency_keys TO holdfast_system;

-- Platform table: attempts within a window. Keys are hashes, so neither emails nor addresses are kept.
CREATE TABLE rate_limits (
  key            bytea PRIMARY KEY,
  window_ends_at timestamptz NOT NULL,
  attempts       integer NOT NULL
);
CREATE INDEX rate_limits_expiry ON rate_limits (window_ends_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON rate_limits TO holdfast_system;

-- Platform table: keys and secrets of the platform. Each value is sealed with its own key, which is
-- wrapped under the key-encryption key named kek_id; a new KEK re-wraps, and leaves the values alone.
CREATE TABLE sealed_keys (
  name         text PRIMARY KEY,
  kek_id       text NOT NULL,
  wrapped_key  bytea NOT NULL,
  sealed_value bytea NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  wrapped_at   timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT, INSERT, UPDATE (kek_id, wrapped_key, wrapped_at) ON sealed_keys TO holdfast_system;

-- Platform table: processes without a listener show here that they are alive.
CREATE TABLE processes (
  id           uuid PRIMARY KEY,
  kind         text NOT NULL,
  version      text NOT NULL,
  hostname     text NOT NULL,
  started_at   timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT, INSERT, UPDATE, DELETE ON processes TO holdfast_system;
