-- Allocations: a tenant's user on a node. src/allocations/state.ts is the only door to `status`.

ALTER TABLE projects ADD CONSTRAINT projects_of_org UNIQUE (org_id, id);

CREATE TABLE allocations (
  id           uuid PRIMARY KEY,
  org_id       uuid NOT NULL REFERENCES organizations,
  project_id   uuid NOT NULL,
  node_id      uuid NOT NULL,
  username     text NOT NULL CHECK (username ~ '^[a-z][a-z0-9-]{0,30}$'),
  ssh_keys     text[] NOT NULL DEFAULT '{}',
  status       text NOT NULL DEFAULT 'requested'
               CHECK (status IN ('requested', 'active', 'releasing', 'released', 'failed')),
  reason       json,
  revision     integer NOT NULL DEFAULT 1,
  -- The task that works on it, or worked on it last. No foreign key: history is removed earlier.
  task_id      uuid,
  own_account  boolean NOT NULL DEFAULT false,
  home         text,
  created_by   text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  active_at    timestamptz,
  released_at  timestamptz,
  FOREIGN KEY (org_id, project_id) REFERENCES projects (org_id, id),
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  CHECK (status <> 'failed' OR reason IS NOT NULL),
  CHECK ((status = 'released') = (released_at IS NOT NULL))
);
-- A user belongs to one allocation at a time. A failed one may have left something: it is released first.
CREATE UNIQUE INDEX allocations_live ON allocations (node_id, username) WHERE status <> 'released';
CREATE INDEX allocations_newest ON allocations (org_id, id DESC);
CREATE INDEX allocations_of_node ON allocations (node_id, id DESC);
CREATE INDEX allocations_of_project ON allocations (project_id);
CREATE INDEX allocations_moving ON allocations (id) WHERE status IN ('requested', 'releasing');
CREATE INDEX allocations_of_task ON allocations (task_id) WHERE status IN ('requested', 'releasing');
ALTER TABLE allocations ENABLE ROW LEVEL SECURITY;
ALTER TABLE allocations FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON allocations TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON allocations TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (status, reason, revision, task_id, released_at) ON allocations TO holdfast_app;
GRANT SELECT, UPDATE (status, reason, revision, task_id, own_account, home, active_at, released_at)
  ON allocations TO holdfast_system;
