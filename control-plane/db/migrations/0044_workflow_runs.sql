-- Runs of workflows (ADR 60). The events are the truth; the cursor is what follows from them, so that a run continues
-- without reading all of them.

CREATE TABLE workflow_runs (
  id               uuid PRIMARY KEY,
  org_id           uuid NOT NULL REFERENCES organizations,
  workflow_id      uuid NOT NULL,
  version          integer NOT NULL,
  -- src/workflows/runs/transitions/ is the only door to it.
  status           text NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
  input            json NOT NULL,
  output           json,
  failure          json,
  cancel_requested boolean NOT NULL DEFAULT false,
  -- Null until the run starts.
  cursor           json,
  last_seq         integer NOT NULL DEFAULT 0,
  -- When it has something to do; infinity: when somebody wakes it.
  wake_at          timestamptz NOT NULL DEFAULT now(),
  -- Counts who continued it. What an earlier one writes is refused.
  claim            integer NOT NULL DEFAULT 0,
  claimed_until    timestamptz,
  -- Requests to agents whose results it waits for.
  awaits           text[] NOT NULL DEFAULT '{}',
  -- On whose behalf steps are dispatched.
  user_id          uuid NOT NULL,
  actor_type       text NOT NULL,
  actor_id         uuid,
  actor_name       text NOT NULL,
  role             text NOT NULL,
  correlation_id   text NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT now(),
  started_at       timestamptz,
  finished_at      timestamptz,
  deadline_at      timestamptz NOT NULL,
  UNIQUE (org_id, id),
  FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id),
  FOREIGN KEY (workflow_id, version) REFERENCES workflow_versions (workflow_id, version),
  CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CHECK (status <> 'queued' OR started_at IS NULL AND cursor IS NULL AND last_seq = 0),
  CHECK (status <> 'running' OR started_at IS NOT NULL AND cursor IS NOT NULL AND last_seq > 0),
  CHECK ((status = 'failed') = (failure IS NOT NULL))
) WITH (fillfactor = 70);
CREATE INDEX workflow_runs_due ON workflow_runs (wake_at) WHERE finished_at IS NULL AND claimed_until IS NULL;
CREATE INDEX workflow_runs_claimed ON workflow_runs (claimed_until) WHERE finished_at IS NULL AND claimed_until IS NOT NULL;
CREATE INDEX workflow_runs_awaiting ON workflow_runs (id) WHERE finished_at IS NULL AND awaits <> '{}';
CREATE INDEX workflow_runs_open ON workflow_runs (org_id, id) WHERE finished_at IS NULL;
CREATE INDEX workflow_runs_newest ON workflow_runs (org_id, id DESC);
CREATE INDEX workflow_runs_of ON workflow_runs (workflow_id, id DESC);
ALTER TABLE workflow_runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_runs FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON workflow_runs TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON workflow_runs TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (cancel_requested, wake_at) ON workflow_runs TO holdfast_app;
GRANT SELECT, UPDATE ON workflow_runs TO holdfast_system;

-- Append-only: nobody has the right to change or remove an event.
CREATE TABLE workflow_run_events (
  run_id  uuid NOT NULL,
  org_id  uuid NOT NULL,
  seq     integer NOT NULL CHECK (seq > 0),
  at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  type    text NOT NULL CHECK (type IN ('run_started', 'node_started', 'node_dispatched', 'node_waiting', 'node_succeeded',
            'node_failed', 'node_retried', 'node_skipped', 'run_cancel_requested', 'run_succeeded', 'run_failed', 'run_cancelled')),
  node    text,
  attempt integer,
  data    json NOT NULL,
  PRIMARY KEY (run_id, seq),
  FOREIGN KEY (org_id, run_id) REFERENCES workflow_runs (org_id, id),
  CHECK ((type LIKE 'node\_%') = (node IS NOT NULL))
);
ALTER TABLE workflow_run_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_run_events FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON workflow_run_events TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON workflow_run_events TO holdfast_system USING (true);
GRANT SELECT ON workflow_run_events TO holdfast_app;
GRANT SELECT, INSERT ON workflow_run_events TO holdfast_system;

-- What people send to a node that waits: one answer each. The engine makes an event of it.
CREATE TABLE workflow_run_signals (
  run_id      uuid NOT NULL,
  org_id      uuid NOT NULL,
  node        text NOT NULL,
  approved    boolean NOT NULL,
  output      json NOT NULL,
  sender_name text NOT NULL,
  at          timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (run_id, node),
  FOREIGN KEY (org_id, run_id) REFERENCES workflow_runs (org_id, id)
);
ALTER TABLE workflow_run_signals ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_run_signals FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON workflow_run_signals TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON workflow_run_signals TO holdfast_system USING (true);
GRANT SELECT, INSERT ON workflow_run_signals TO holdfast_app;
GRANT SELECT ON workflow_run_signals TO holdfast_system;
