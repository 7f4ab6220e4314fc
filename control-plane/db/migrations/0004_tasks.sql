-- The task queue and its history. src/tasks/state.ts is the only door to `status`; the checks here
-- repeat what it promises.

CREATE TABLE tasks (
  id                  uuid PRIMARY KEY,
  org_id              uuid NOT NULL,
  node_id             uuid NOT NULL,
  type                text NOT NULL,
  params              json NOT NULL,
  idempotent          boolean NOT NULL,
  timeout_seconds     integer NOT NULL CHECK (timeout_seconds > 0),
  priority            smallint NOT NULL DEFAULT 5 CHECK (priority BETWEEN 0 AND 9),
  -- Tasks of a node with the same key run one after the other, in the order they were made.
  order_key           text,
  signature           text NOT NULL,
  -- Until then the agent may begin it.
  expires_at          timestamptz NOT NULL,
  status              text NOT NULL DEFAULT 'queued'
                      CHECK (status IN ('queued', 'dispatched', 'completed', 'failed', 'expired', 'cancelled')),
  -- Counts deliveries; a result of an older one is evidence only.
  generation          integer NOT NULL DEFAULT 0,
  lease_until         timestamptz,
  revision            integer NOT NULL DEFAULT 1,
  phase               text,
  progress            json,
  timings             json NOT NULL DEFAULT '{}',
  result              json,
  failure             json,
  -- Ended by its node's own word: the same word said again is a repetition, not late.
  reported            boolean NOT NULL DEFAULT false,
  cancel_requested_at timestamptz,
  created_by          text NOT NULL,
  correlation_id      text NOT NULL,
  created_at          timestamptz NOT NULL DEFAULT now(),
  dispatched_at       timestamptz,
  finished_at         timestamptz,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  CHECK ((status = 'dispatched') = (lease_until IS NOT NULL)),
  CHECK ((status IN ('queued', 'dispatched')) = (finished_at IS NULL)),
  CHECK ((status = 'completed') = (result IS NOT NULL)),
  CHECK ((status IN ('failed', 'expired', 'cancelled')) = (failure IS NOT NULL)),
  -- Nothing completes or fails but by its node's own result.
  CHECK (CASE WHEN status IN ('completed', 'failed') THEN reported
              WHEN status = 'cancelled' THEN true
              ELSE NOT reported END)
);
-- Few indexes: both steps of a task's life (claim, result) write every one that holds it. None has
-- lease_until, so that renewing a lease stays within its page; the sweeper walks all that is
-- dispatched, which is never much. None has finished_at: ids are in order of time.
CREATE INDEX tasks_queued ON tasks (node_id, priority DESC, id) WHERE status = 'queued';
CREATE INDEX tasks_expiry ON tasks (expires_at) WHERE status = 'queued';
-- With the id, so that nobody walks through a node's whole history to have its tasks in order.
CREATE INDEX tasks_dispatched ON tasks (node_id, id) WHERE status = 'dispatched';
CREATE INDEX tasks_ordered ON tasks (node_id, order_key, id) WHERE order_key IS NOT NULL AND status = 'queued';
-- Replicas that claim at the same moment cannot both give out a task of one key.
CREATE UNIQUE INDEX tasks_one_at_a_time ON tasks (node_id, order_key)
  WHERE order_key IS NOT NULL AND status = 'dispatched';
CREATE INDEX tasks_newest ON tasks (org_id, id DESC);
-- For pages. By the text of the node's id, so that no statement of the queue can walk through a node's
-- whole history by mistake, which the planner otherwise did over a table that was small when it planned.
CREATE INDEX tasks_of_node ON tasks ((node_id::text), id DESC);
ALTER TABLE tasks ENABLE ROW LEVEL SECURITY;
ALTER TABLE tasks FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON tasks TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON tasks TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (status, lease_until, revision, failure, cancel_requested_at, finished_at)
  ON tasks TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON tasks TO holdfast_system;

-- Results that came after the task had ended otherwise, or for an older delivery: never overwrite,
-- never lost.
CREATE TABLE late_results (
  task_id     uuid NOT NULL REFERENCES tasks ON DELETE CASCADE,
  org_id      uuid NOT NULL,
  node_id     uuid NOT NULL,
  generation  integer NOT NULL,
  outcome     json NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (task_id, generation)
);
ALTER TABLE late_results ENABLE ROW LEVEL SECURITY;
ALTER TABLE late_results FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON late_results TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON late_results TO holdfast_system USING (true);
GRANT SELECT ON late_results TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON late_results TO holdfast_system;
