-- Health of hosts: what the last probe told of each node, and the routine of asking for it.

CREATE TABLE node_health (
  node_id     uuid PRIMARY KEY,
  org_id      uuid NOT NULL,
  observed_at timestamptz NOT NULL,
  health      json NOT NULL,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id)
);
ALTER TABLE node_health ENABLE ROW LEVEL SECURITY;
ALTER TABLE node_health FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON node_health TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON node_health TO holdfast_system USING (true);
GRANT SELECT ON node_health TO holdfast_app;
GRANT SELECT, INSERT, UPDATE ON node_health TO holdfast_system;

-- Apart from node_health: small rows, looked through every few seconds for those whose turn it is.
CREATE TABLE node_probes (
  node_id     uuid PRIMARY KEY,
  org_id      uuid NOT NULL,
  asked_at    timestamptz NOT NULL,
  -- The probes that are kept, newest first: found without looking through a node's history.
  task_ids    uuid[] NOT NULL DEFAULT '{}',
  -- Asked for since the last audit event that sums them up.
  unaudited   integer NOT NULL DEFAULT 0 CHECK (unaudited >= 0),
  first_at    timestamptz,
  audited_at  timestamptz,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  CHECK ((unaudited = 0) = (first_at IS NULL))
);
ALTER TABLE node_probes ENABLE ROW LEVEL SECURITY;
ALTER TABLE node_probes FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON node_probes TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON node_probes TO holdfast_system USING (true);
GRANT SELECT ON node_probes TO holdfast_app;
GRANT SELECT, INSERT, UPDATE ON node_probes TO holdfast_system;

-- Asked for by the system again and again: left out of people's lists, and no news to an open page.
ALTER TABLE tasks ADD COLUMN routine boolean NOT NULL DEFAULT false;
