-- Who uses a node's identity. Heartbeats of a node are numbered, and each names the last one that its process got an
-- answer to. One process continues its own line; two that run at the same time continue two.

ALTER TABLE node_presence
  -- Of the last heartbeat, and of the one that its process had been answered before it.
  ADD COLUMN number       bigint NOT NULL DEFAULT 0,
  ADD COLUMN after_number bigint,
  -- Heartbeats that do not continue the last one, until they are reviewed. Null at rest.
  ADD COLUMN unreviewed   jsonb;

-- The last holders of a node's identity; written when a heartbeat does not continue the one before.
CREATE TABLE node_holders (
  node_id   uuid PRIMARY KEY,
  org_id    uuid NOT NULL,
  lineage   jsonb NOT NULL,
  -- When two of them proved last that both were running.
  proved_at timestamptz,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id)
);
ALTER TABLE node_holders ENABLE ROW LEVEL SECURITY;
ALTER TABLE node_holders FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON node_holders TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON node_holders TO holdfast_system USING (true);
GRANT SELECT ON node_holders TO holdfast_app;
GRANT SELECT, INSERT, UPDATE ON node_holders TO holdfast_system;
