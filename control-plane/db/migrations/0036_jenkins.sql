-- Jenkins controllers whose queued builds get a VM each (ADR 52).

-- User data of a lease's VM that contains secrets: sealed until its host has taken it, and erased then. No task contains it.
CREATE TABLE vm_lease_user_data (
  lease_id uuid PRIMARY KEY,
  org_id   uuid NOT NULL,
  sealed   bytea NOT NULL,
  -- Of the text. The signed task names it, so that a host uses this text or none.
  sha256   text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  FOREIGN KEY (org_id, lease_id) REFERENCES vm_leases (org_id, id) ON DELETE CASCADE
);
ALTER TABLE vm_lease_user_data ENABLE ROW LEVEL SECURITY;
ALTER TABLE vm_lease_user_data FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON vm_lease_user_data TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON vm_lease_user_data TO holdfast_system USING (true);
-- The role that serves people writes what is sealed, and cannot read it.
GRANT SELECT (lease_id, org_id, sha256), INSERT ON vm_lease_user_data TO holdfast_app;
GRANT SELECT, DELETE ON vm_lease_user_data TO holdfast_system;

CREATE TABLE jenkins_controllers (
  id                uuid PRIMARY KEY,
  org_id            uuid NOT NULL REFERENCES organizations,
  name              text NOT NULL CHECK (name ~ '^[a-z][a-z0-9-]{0,38}[a-z0-9]$'),
  -- Ends with a slash.
  url               text NOT NULL CHECK (url ~ '^https?://.*/$'),
  user_name         text NOT NULL,
  sealed_token      bytea NOT NULL,
  enabled           boolean NOT NULL DEFAULT true,
  -- Which labels of Jenkins are served, and with which label of leases.
  labels            json NOT NULL,
  most_leases       integer NOT NULL CHECK (most_leases >= 0),
  burst             integer NOT NULL CHECK (burst > 0),
  cooldown_seconds  integer NOT NULL CHECK (cooldown_seconds > 0),
  connect_seconds   integer NOT NULL CHECK (connect_seconds > 0),
  -- Whoever polls moves it on first, so that one process polls at a time.
  next_poll_at      timestamptz NOT NULL DEFAULT now(),
  last_polled_at    timestamptz,
  last_succeeded_at timestamptz,
  -- In a row.
  failures          integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
  -- Why the last poll failed.
  problem           json,
  -- The queue as of the last poll that succeeded, and what was decided about each item.
  queue             json NOT NULL DEFAULT '[]',
  creator_name      text NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  UNIQUE (org_id, name),
  UNIQUE (org_id, id)
) WITH (fillfactor = 70);
ALTER TABLE jenkins_controllers ENABLE ROW LEVEL SECURITY;
ALTER TABLE jenkins_controllers FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON jenkins_controllers TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON jenkins_controllers TO holdfast_system USING (true);
-- The role that serves people writes what is sealed, and cannot read it.
GRANT SELECT (id, org_id, name, url, user_name, enabled, labels, most_leases, burst, cooldown_seconds, connect_seconds,
  next_poll_at, last_polled_at, last_succeeded_at, failures, problem, queue, creator_name, created_at)
  ON jenkins_controllers TO holdfast_app;
GRANT INSERT, UPDATE (enabled, next_poll_at), DELETE ON jenkins_controllers TO holdfast_app;
GRANT SELECT, UPDATE (next_poll_at, last_polled_at, last_succeeded_at, failures, problem, queue) ON jenkins_controllers
  TO holdfast_system;

-- One row for a queued item that gets a VM, with its node on the controller. src/jenkins/builds/transitions/ is the only door to
-- `status`; the checks here repeat what its table promises.
CREATE TABLE jenkins_builds (
  id               uuid PRIMARY KEY,
  org_id           uuid NOT NULL,
  controller_id    uuid NOT NULL,
  queue_id         bigint NOT NULL,
  -- Counts the rows of one item.
  attempt          integer NOT NULL CHECK (attempt > 0),
  task             text NOT NULL,
  label_expression text NOT NULL,
  -- Of the node.
  node_labels      text[] NOT NULL,
  lease_label      text NOT NULL,
  status           text NOT NULL CHECK (status IN ('claimed', 'launching', 'connected', 'building', 'removing', 'ended')),
  revision         integer NOT NULL DEFAULT 1,
  -- Both are decided before either exists, so that each can be found after a crash.
  lease_id         uuid NOT NULL UNIQUE,
  node_name        text NOT NULL UNIQUE,
  -- The lease was stored. It may have been removed since.
  leased           boolean NOT NULL DEFAULT false,
  build_url        text,
  -- Why it ends or has ended.
  reason           json,
  created_at       timestamptz NOT NULL DEFAULT now(),
  connected_at     timestamptz,
  building_at      timestamptz,
  -- Since when its agent is disconnected.
  lost_at          timestamptz,
  -- Since when its item is no longer in the queue, without a build on the node.
  left_at          timestamptz,
  removing_at      timestamptz,
  finished_at      timestamptz,
  FOREIGN KEY (org_id, controller_id) REFERENCES jenkins_controllers (org_id, id) ON DELETE CASCADE,
  CHECK ((status = 'ended') = (finished_at IS NOT NULL)),
  CHECK (status <> 'claimed' OR NOT leased),
  CHECK (status NOT IN ('launching', 'connected', 'building') OR leased),
  CHECK (status <> 'connected' OR connected_at IS NOT NULL),
  CHECK (status <> 'building' OR building_at IS NOT NULL),
  CHECK (status NOT IN ('removing', 'ended') OR reason IS NOT NULL AND removing_at IS NOT NULL)
) WITH (fillfactor = 80);
-- Never two VMs for one item.
CREATE UNIQUE INDEX jenkins_builds_one_per_item ON jenkins_builds (controller_id, queue_id) WHERE finished_at IS NULL;
CREATE INDEX jenkins_builds_of_controller ON jenkins_builds (controller_id, id DESC);
CREATE INDEX jenkins_builds_ended ON jenkins_builds (finished_at) WHERE finished_at IS NOT NULL;
ALTER TABLE jenkins_builds ENABLE ROW LEVEL SECURITY;
ALTER TABLE jenkins_builds FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON jenkins_builds TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON jenkins_builds TO holdfast_system USING (true);
GRANT SELECT, UPDATE ON jenkins_builds TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON jenkins_builds TO holdfast_system;
