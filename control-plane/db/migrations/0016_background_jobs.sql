-- Platform table: the background jobs that one of all workers runs, a row each. A turn is taken by one conditional UPDATE;
-- the worker that took it stores the job's report with its heartbeat.
ALTER TABLE reconciler_turns RENAME TO background_jobs;
ALTER TABLE background_jobs ADD COLUMN report jsonb;

-- Reports of the jobs that each process runs for itself, by name.
ALTER TABLE processes ADD COLUMN jobs jsonb NOT NULL DEFAULT '{}';

-- Since when the renewal of the node's certificate is overdue, as reported in the log; null: it is not overdue.
ALTER TABLE nodes ADD COLUMN renewal_overdue_at timestamptz;
GRANT UPDATE (renewal_overdue_at) ON nodes TO holdfast_system;
