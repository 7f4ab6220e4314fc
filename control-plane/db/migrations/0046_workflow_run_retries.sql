-- Failed runs continue where they failed (ADR 64).

-- A retried run waits for room again, with what it has done so far.
ALTER TABLE workflow_runs DROP CONSTRAINT workflow_runs_check1;
ALTER TABLE workflow_runs ADD CONSTRAINT workflow_runs_queued
  CHECK (status <> 'queued' OR (cursor IS NULL) = (last_seq = 0) AND (cursor IS NULL) = (started_at IS NULL));
GRANT UPDATE (status, version, output, failure, cursor, last_seq, finished_at, deadline_at, awaits, claim) ON workflow_runs TO holdfast_app;

ALTER TABLE workflow_run_events DROP CONSTRAINT workflow_run_events_type_check;
ALTER TABLE workflow_run_events ADD CONSTRAINT workflow_run_events_type_check
  CHECK (type IN ('run_started', 'node_started', 'node_dispatched', 'node_waiting', 'node_succeeded', 'node_failed', 'node_retried',
    'node_skipped', 'run_cancel_requested', 'run_retried', 'run_succeeded', 'run_failed', 'run_cancelled'));
GRANT INSERT ON workflow_run_events TO holdfast_app;

-- A node that waits again needs another answer.
ALTER TABLE workflow_run_signals ADD COLUMN attempt integer NOT NULL DEFAULT 1 CHECK (attempt > 0);
ALTER TABLE workflow_run_signals DROP CONSTRAINT workflow_run_signals_pkey;
ALTER TABLE workflow_run_signals ADD PRIMARY KEY (run_id, node, attempt);
