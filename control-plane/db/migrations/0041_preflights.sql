-- Preflights: whether a node and an allocation's terminal worked, hop by hop (ADR 57).

CREATE TABLE preflights (
  id             uuid PRIMARY KEY,
  org_id         uuid NOT NULL,
  node_id        uuid NOT NULL,
  -- Null: only the node was checked. It may have been released since.
  allocation_id  uuid,
  state          text NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
  result         text CHECK (result IN ('ready', 'failed', 'incomplete')),
  failed_hop     text,
  run_from       text NOT NULL CHECK (run_from IN ('control_plane', 'command_line')),
  runner_name    text NOT NULL,
  correlation_id text NOT NULL,
  started_at     timestamptz NOT NULL DEFAULT now(),
  finished_at    timestamptz,
  -- Those that have an outcome so far.
  hops           jsonb NOT NULL DEFAULT '[]',
  report         jsonb,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  CHECK ((state = 'finished') = (report IS NOT NULL)),
  CHECK ((state = 'finished') = (result IS NOT NULL)),
  CHECK ((state = 'running') = (finished_at IS NULL)),
  CHECK ((result = 'failed') = (failed_hop IS NOT NULL) OR result IS NULL)
);
CREATE INDEX preflights_newest ON preflights (org_id, id DESC);
CREATE INDEX preflights_of_node ON preflights (node_id, id DESC);
CREATE INDEX preflights_of_allocation ON preflights (allocation_id, id DESC) WHERE allocation_id IS NOT NULL;
-- One at a time by the api, which opens a terminal for it.
CREATE UNIQUE INDEX preflights_running ON preflights (node_id) WHERE state = 'running';
ALTER TABLE preflights ENABLE ROW LEVEL SECURITY;
ALTER TABLE preflights FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON preflights TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON preflights TO holdfast_system USING (true);
GRANT SELECT, INSERT ON preflights TO holdfast_app;
GRANT SELECT, DELETE, UPDATE (state, result, failed_hop, finished_at, hops, report) ON preflights TO holdfast_system;
