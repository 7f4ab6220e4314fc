-- Log lines are kept by the processes themselves. An api asks for some of them here, and each process with a database answers
-- here; gateways answer through an api. Nothing of it lasts: it need not survive a crash, and is removed when it was read.
CREATE UNLOGGED TABLE log_requests (
  id       uuid PRIMARY KEY,
  request  json NOT NULL,
  asked_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNLOGGED TABLE log_answers (
  request_id uuid NOT NULL REFERENCES log_requests ON DELETE CASCADE,
  process_id uuid NOT NULL,
  answer     json NOT NULL,
  PRIMARY KEY (request_id, process_id)
);
GRANT SELECT, INSERT, DELETE ON log_requests, log_answers TO holdfast_system;

-- Evidence bundles: one signed archive each, kept for some days so that it can be downloaded again.
CREATE TABLE evidence_bundles (
  id             uuid PRIMARY KEY,
  org_id         uuid NOT NULL REFERENCES organizations,
  subject_type   text NOT NULL CHECK (subject_type IN ('node', 'allocation', 'incident', 'correlation')),
  subject_id     text NOT NULL,
  subject_name   text,
  creator_name   text NOT NULL,
  correlation_id text NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  expires_at     timestamptz NOT NULL,
  sha256         text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  files          integer NOT NULL CHECK (files > 0),
  content        bytea NOT NULL,
  UNIQUE (org_id, id)
);
CREATE INDEX evidence_bundles_newest ON evidence_bundles (org_id, id DESC);
CREATE INDEX evidence_bundles_expired ON evidence_bundles (expires_at);
ALTER TABLE evidence_bundles ENABLE ROW LEVEL SECURITY;
ALTER TABLE evidence_bundles FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON evidence_bundles TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON evidence_bundles TO holdfast_system USING (true);
GRANT SELECT, INSERT ON evidence_bundles TO holdfast_app;
GRANT SELECT, DELETE ON evidence_bundles TO holdfast_system;

-- A trace asks for these by the id alone.
CREATE INDEX executions_of_correlation ON executions (org_id, correlation_id);
CREATE INDEX vm_leases_of_correlation ON vm_leases (org_id, correlation_id);
