-- Incidents of several nodes with one cause, and the id of an incident in everything that is done in its course.

-- Platform table: when no process of a kind ran, or none reached the database. `ended_at` is null while none does.
CREATE TABLE control_plane_outages (
  kind     text NOT NULL,
  began_at timestamptz NOT NULL,
  ended_at timestamptz,
  PRIMARY KEY (kind, began_at),
  CHECK (ended_at >= began_at)
);
CREATE UNIQUE INDEX control_plane_outages_open ON control_plane_outages (kind) WHERE ended_at IS NULL;
GRANT SELECT, INSERT, UPDATE (ended_at), DELETE ON control_plane_outages TO holdfast_system;

-- Platform table: a cause that nodes of any organizations have in common. An organization sees its own row in `incidents`,
-- with its own id and its own nodes.
CREATE TABLE platform_incidents (
  id                uuid PRIMARY KEY,
  reason            text NOT NULL,
  -- What the nodes share; `value` is empty for `fleet` and `control_plane`.
  attribute         text NOT NULL,
  value             text NOT NULL,
  began_at          timestamptz NOT NULL,
  opened_at         timestamptz NOT NULL DEFAULT now(),
  closed_at         timestamptz,
  -- Because of which the control plane is suspected; null: because of the number of nodes.
  outage_began_at   timestamptz,
  outage_ended_at   timestamptz,
  -- At present; of a closed one, at last.
  nodes             integer NOT NULL,
  organizations     integer NOT NULL,
  CHECK (outage_began_at IS NULL OR attribute = 'control_plane')
);
CREATE UNIQUE INDEX platform_incidents_open ON platform_incidents (reason, attribute, value) WHERE closed_at IS NULL;
CREATE INDEX platform_incidents_closed ON platform_incidents (closed_at) WHERE closed_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON platform_incidents TO holdfast_system;

-- The owner of the tables is not exempt from row-level security; without policies for it, it would see no rows.
ALTER TABLE incidents NO FORCE ROW LEVEL SECURITY;
ALTER TABLE node_presence NO FORCE ROW LEVEL SECURITY;

ALTER TABLE incidents
  -- Null: of several nodes, which are those whose incidents are part of it.
  ALTER COLUMN node_id DROP NOT NULL,
  ADD COLUMN platform_incident_id uuid REFERENCES platform_incidents,
  ADD COLUMN part_of              uuid,
  -- Since when the node has the reason that is the worst at present.
  ADD COLUMN reason_since         timestamptz,
  -- Whether it was compared with those of other nodes since it was opened, changed or closed.
  ADD COLUMN compared             boolean NOT NULL DEFAULT false,
  -- Correlation ids under which the host recorded it.
  ADD COLUMN episodes             text[] NOT NULL DEFAULT '{}',
  ADD COLUMN attribute            text,
  ADD COLUMN value                text,
  ADD COLUMN outage_began_at      timestamptz,
  ADD COLUMN outage_ended_at      timestamptz,
  ADD CHECK ((node_id IS NULL) = (platform_incident_id IS NOT NULL)),
  ADD CHECK ((platform_incident_id IS NULL) = (attribute IS NULL)),
  ADD CHECK (node_id IS NOT NULL OR part_of IS NULL),
  ADD FOREIGN KEY (org_id, part_of) REFERENCES incidents (org_id, id) ON DELETE SET NULL (part_of);
UPDATE incidents SET reason_since = began_at, compared = closed_at IS NOT NULL;
ALTER TABLE incidents ALTER COLUMN reason_since SET NOT NULL;
-- Partial, and not by organization first: over an index that begins with the organization, the planner would check foreign
-- keys to incidents by walking through all of them, as long as it takes the table for small.
CREATE UNIQUE INDEX incidents_of_platform ON incidents (platform_incident_id, org_id)
  WHERE platform_incident_id IS NOT NULL;
CREATE INDEX incidents_to_compare ON incidents (id) WHERE NOT compared;
CREATE INDEX incidents_part_of ON incidents (part_of) WHERE part_of IS NOT NULL;
-- Whoever hands in evidence of a host links it to the incident. A repeated observation has the id of the last time.
GRANT UPDATE (episodes) ON incidents TO holdfast_app;
GRANT UPDATE (correlation_id) ON node_observations TO holdfast_app, holdfast_system;

-- What a node may share with others, by name: its agent's version, its profile, the ingress it came through, its subnet.
ALTER TABLE node_presence ADD COLUMN attributes json NOT NULL DEFAULT '{}';
UPDATE node_presence SET attributes = json_build_object(
  'agent_version', heartbeat #>> '{facts,agent_version}',
  'profile', (heartbeat #>> '{profile,name}') || ' version ' || (heartbeat #>> '{profile,version}'));

ALTER TABLE incidents FORCE ROW LEVEL SECURITY;
ALTER TABLE node_presence FORCE ROW LEVEL SECURITY;

-- SHA-256 of the CA's certificate, hex; null: issued before this was recorded.
ALTER TABLE node_certificates ADD COLUMN issuer text;

-- The incident of the node that was open then. Not a foreign key: incidents are removed earlier than the audit.
ALTER TABLE tasks ADD COLUMN incident_id uuid;
CREATE INDEX tasks_of_incident ON tasks (incident_id, id DESC) WHERE incident_id IS NOT NULL;
ALTER TABLE audit_events ADD COLUMN incident_id uuid;
CREATE INDEX audit_events_of_incident ON audit_events (incident_id, id DESC) WHERE incident_id IS NOT NULL;
