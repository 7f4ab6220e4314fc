-- A run holds a place of its organization while a worker or an agent works for it, not while it waits (ADR 64). Those that hold one, and
-- those that need one, are read apart; those that hold one are counted, and nothing else is.

DROP INDEX workflow_runs_due;
CREATE INDEX workflow_runs_due ON workflow_runs (queue, org_id, (awaits = '{}'), wake_at) WHERE finished_at IS NULL AND claimed_until IS NULL;
CREATE INDEX workflow_runs_busy ON workflow_runs (org_id) WHERE finished_at IS NULL AND (claimed_until IS NOT NULL OR awaits <> '{}');
