-- What starts runs by itself: schedules and webhooks (ADR 64).

-- On whose behalf a run acts that no person started.
ALTER TABLE organizations ADD COLUMN service_user_id uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE;

-- The triggers of the published version. One that a later version has again is the same row: its URL, token and next time stay.
CREATE TABLE workflow_triggers (
  id          uuid PRIMARY KEY,
  org_id      uuid NOT NULL REFERENCES organizations,
  workflow_id uuid NOT NULL,
  -- What makes it the same one in another version.
  key         text NOT NULL,
  type        text NOT NULL CHECK (type IN ('cron', 'webhook')),
  definition  json NOT NULL,
  enabled     boolean NOT NULL DEFAULT true,
  -- The next time of a schedule that is in use.
  next_at     timestamptz,
  last_at     timestamptz,
  last_run_id uuid,
  -- Of a webhook without a named secret. Null: nobody has created one yet.
  token_hash  bytea,
  token_at    timestamptz,
  created_at  timestamptz NOT NULL DEFAULT now(),
  -- The published version does not have it, or the workflow was deleted.
  removed_at  timestamptz,
  UNIQUE (org_id, id),
  UNIQUE (workflow_id, key),
  FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id),
  CHECK (next_at IS NULL OR type = 'cron' AND enabled AND removed_at IS NULL),
  CHECK ((token_hash IS NULL) = (token_at IS NULL))
);
CREATE INDEX workflow_triggers_due ON workflow_triggers (next_at) WHERE next_at IS NOT NULL;
ALTER TABLE workflow_triggers ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_triggers FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON workflow_triggers TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON workflow_triggers TO holdfast_system USING (true);
GRANT SELECT (id, org_id, workflow_id, key, type, definition, enabled, next_at, last_at, last_run_id, token_at, created_at, removed_at),
  INSERT, UPDATE (definition, enabled, next_at, token_hash, token_at, removed_at) ON workflow_triggers TO holdfast_app;
GRANT SELECT, UPDATE (next_at, last_at, last_run_id) ON workflow_triggers TO holdfast_system;

-- Of a run that a trigger started. The indexes hold that a time and a delivery start one run, whatever the processes do.
ALTER TABLE workflow_runs
  ADD COLUMN trigger_id uuid,
  ADD COLUMN scheduled_at timestamptz,
  ADD COLUMN delivery_id text,
  -- Which workers continue it.
  ADD COLUMN queue text NOT NULL DEFAULT 'workflow-continuations',
  ADD FOREIGN KEY (org_id, trigger_id) REFERENCES workflow_triggers (org_id, id);
CREATE UNIQUE INDEX workflow_runs_scheduled ON workflow_runs (trigger_id, scheduled_at) WHERE scheduled_at IS NOT NULL;
CREATE UNIQUE INDEX workflow_runs_delivered ON workflow_runs (trigger_id, delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX workflow_runs_triggered ON workflow_runs (trigger_id) WHERE finished_at IS NULL AND trigger_id IS NOT NULL;
GRANT INSERT ON workflow_runs TO holdfast_system;

-- Looked at for each organization that has runs to start or to continue, so that runs that wait cost nothing.
DROP INDEX workflow_runs_due;
CREATE INDEX workflow_runs_due ON workflow_runs (queue, org_id, (status = 'queued'), wake_at) WHERE finished_at IS NULL AND claimed_until IS NULL;
