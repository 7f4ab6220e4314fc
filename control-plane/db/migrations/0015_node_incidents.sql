-- What an incident of a node is found by: the correlation id of its last heartbeat, and its last refused certificate.

ALTER TABLE node_presence ADD COLUMN correlation_id text;

-- What the node's page says when a node is locked out.

CREATE TABLE node_refusals (
  node_id        uuid PRIMARY KEY,
  org_id         uuid NOT NULL,
  serial         text NOT NULL,
  code           text NOT NULL,
  -- The last one of this certificate for this reason.
  at             timestamptz NOT NULL DEFAULT now(),
  -- Of the one that is in the audit.
  correlation_id text NOT NULL,
  audited_at     timestamptz NOT NULL DEFAULT now(),
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id)
);
ALTER TABLE node_refusals ENABLE ROW LEVEL SECURITY;
ALTER TABLE node_refusals FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON node_refusals TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON node_refusals TO holdfast_system USING (true);
GRANT SELECT ON node_refusals TO holdfast_app;
GRANT SELECT, INSERT, UPDATE ON node_refusals TO holdfast_system;
