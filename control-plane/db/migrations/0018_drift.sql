-- Evidence about nodes, what follows from it, and the incidents that it adds up to.

-- What one observer saw at one time. Only ever appended, except that an observation which is repeated unchanged moves
-- `seen_at`. Bounded: the newest of each kind and key, and its last changes.
CREATE TABLE node_observations (
  id             uuid PRIMARY KEY,
  org_id         uuid NOT NULL,
  node_id        uuid NOT NULL,
  kind           text NOT NULL,
  -- Tells several of one kind apart; empty where there is only one.
  key            text NOT NULL DEFAULT '',
  value          text NOT NULL,
  observer       text NOT NULL,
  detail         json,
  -- By the observer's clock.
  observed_at    timestamptz NOT NULL,
  seen_at        timestamptz NOT NULL,
  received_at    timestamptz NOT NULL DEFAULT now(),
  correlation_id text,
  incident_id    uuid,
  -- Null: nothing newer of this kind and key.
  replaced_at    timestamptz,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  CHECK (seen_at >= observed_at)
);
CREATE UNIQUE INDEX node_observations_newest ON node_observations (node_id, kind, key) WHERE replaced_at IS NULL;
CREATE UNIQUE INDEX node_observations_history ON node_observations (node_id, kind, key, observed_at DESC, value);
CREATE INDEX node_observations_of_incident ON node_observations (incident_id) WHERE incident_id IS NOT NULL;
ALTER TABLE node_observations ENABLE ROW LEVEL SECURITY;
ALTER TABLE node_observations FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON node_observations TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON node_observations TO holdfast_system USING (true);
-- People hand in evidence for their own nodes.
GRANT SELECT, INSERT, UPDATE (seen_at, detail, replaced_at), DELETE ON node_observations TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (seen_at, detail, replaced_at), DELETE ON node_observations TO holdfast_system;

CREATE TABLE incidents (
  id             uuid PRIMARY KEY,
  org_id         uuid NOT NULL,
  node_id        uuid NOT NULL,
  -- When the first of its evidence was observed, when it was classified, and when no cause was left.
  began_at       timestamptz NOT NULL,
  opened_at      timestamptz NOT NULL DEFAULT now(),
  closed_at      timestamptz,
  -- Of the worst cause at present; of the last one when it is closed.
  reason         text NOT NULL,
  signal         text,
  severity       text NOT NULL CHECK (severity IN ('P0', 'P1', 'P2')),
  owner          text NOT NULL,
  next_action    text NOT NULL,
  user_state     text NOT NULL,
  detect_seconds integer NOT NULL,
  -- Seconds, or `automatic`, or `next_business_day`.
  repair_within  text NOT NULL,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  UNIQUE (org_id, id)
);
CREATE UNIQUE INDEX incidents_open ON incidents (node_id) WHERE closed_at IS NULL;
CREATE INDEX incidents_of_node ON incidents (node_id, opened_at DESC);
CREATE INDEX incidents_closed ON incidents (closed_at) WHERE closed_at IS NOT NULL;
ALTER TABLE incidents ENABLE ROW LEVEL SECURITY;
ALTER TABLE incidents FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON incidents TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON incidents TO holdfast_system USING (true);
GRANT SELECT ON incidents TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON incidents TO holdfast_system;

-- What was said of the node in the course of an incident, each time that it changed, and all that was known then: a
-- misdiagnosis can be classified again.
CREATE TABLE incident_verdicts (
  incident_id uuid NOT NULL,
  org_id      uuid NOT NULL,
  at          timestamptz NOT NULL DEFAULT clock_timestamp(),
  causes      json NOT NULL,
  evidence    json NOT NULL,
  PRIMARY KEY (incident_id, at),
  FOREIGN KEY (org_id, incident_id) REFERENCES incidents (org_id, id) ON DELETE CASCADE
);
ALTER TABLE incident_verdicts ENABLE ROW LEVEL SECURITY;
ALTER TABLE incident_verdicts FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON incident_verdicts TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON incident_verdicts TO holdfast_system USING (true);
GRANT SELECT ON incident_verdicts TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON incident_verdicts TO holdfast_system;

-- The present verdict on each node. Its row is also the lock under which evidence of the node is written.
CREATE TABLE node_verdicts (
  node_id       uuid PRIMARY KEY,
  org_id        uuid NOT NULL,
  -- When to classify the node again: new evidence sets it to now.
  review_at     timestamptz NOT NULL DEFAULT now(),
  -- The verdict counts the node as reporting: only then has anybody to notice that it stopped.
  reporting     boolean NOT NULL DEFAULT false,
  -- Worst first; empty: healthy.
  causes        json NOT NULL DEFAULT '[]',
  user_state    text NOT NULL DEFAULT 'normal',
  changed_at    timestamptz NOT NULL DEFAULT now(),
  classified_at timestamptz NOT NULL DEFAULT '-infinity',
  incident_id   uuid,
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  FOREIGN KEY (org_id, incident_id) REFERENCES incidents (org_id, id)
) WITH (fillfactor = 50);
CREATE INDEX node_verdicts_due ON node_verdicts (review_at);
ALTER TABLE node_verdicts ENABLE ROW LEVEL SECURITY;
ALTER TABLE node_verdicts FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON node_verdicts TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON node_verdicts TO holdfast_system USING (true);
GRANT SELECT, INSERT (node_id, org_id), UPDATE (node_id, review_at) ON node_verdicts TO holdfast_app;
GRANT SELECT, INSERT, UPDATE ON node_verdicts TO holdfast_system;
