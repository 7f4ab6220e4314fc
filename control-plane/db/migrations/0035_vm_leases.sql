-- VM hosts and leases: one request, one VM, nothing left behind (ADR 51).

-- Base images that leases may name. Hosts report which of them they have, and with which digest.
CREATE TABLE vm_images (
  org_id       uuid NOT NULL REFERENCES organizations,
  id           text NOT NULL CHECK (id ~ '^[a-z0-9][a-z0-9._-]{0,63}$'),
  source       text NOT NULL CHECK (source IN ('manual_local')),
  sha256       text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  created_by   text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  retired_at   timestamptz,
  PRIMARY KEY (org_id, id)
);
ALTER TABLE vm_images ENABLE ROW LEVEL SECURITY;
ALTER TABLE vm_images FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON vm_images TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON vm_images TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (sha256, retired_at) ON vm_images TO holdfast_app;
GRANT SELECT ON vm_images TO holdfast_system;

-- What a request with a label gets where it names nothing itself.
CREATE TABLE vm_labels (
  org_id      uuid NOT NULL,
  label       text NOT NULL CHECK (label ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
  image_id    text NOT NULL,
  profile     text NOT NULL CHECK (profile IN ('tiny', 'small', 'medium', 'large')),
  arch        text,
  accelerator text CHECK (accelerator IN ('kvm', 'nvmm', 'tcg')),
  max_leases  integer CHECK (max_leases >= 0),
  PRIMARY KEY (org_id, label),
  FOREIGN KEY (org_id, image_id) REFERENCES vm_images (org_id, id)
);
ALTER TABLE vm_labels ENABLE ROW LEVEL SECURITY;
ALTER TABLE vm_labels FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON vm_labels TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON vm_labels TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (image_id, profile, arch, accelerator, max_leases), DELETE ON vm_labels TO holdfast_app;
GRANT SELECT ON vm_labels TO holdfast_system;

-- One row a VM host: what the control plane decides and counts. What the host reports is in its last heartbeat. Every statement
-- that changes what is reserved locks the host before its leases, and hosts in the order of their ids.
CREATE TABLE vm_hosts (
  node_id             uuid PRIMARY KEY,
  org_id              uuid NOT NULL,
  enabled             boolean NOT NULL DEFAULT true,
  -- Of its leases that have not ended: as much as the rows of `vm_leases` with it.
  leases              integer NOT NULL DEFAULT 0 CHECK (leases >= 0),
  reserved_vcpus      integer NOT NULL DEFAULT 0 CHECK (reserved_vcpus >= 0),
  reserved_memory_mib integer NOT NULL DEFAULT 0 CHECK (reserved_memory_mib >= 0),
  reserved_disk_gib   integer NOT NULL DEFAULT 0 CHECK (reserved_disk_gib >= 0),
  -- The heartbeat whose report of VMs was compared with the leases last.
  followed_at         timestamptz,
  -- When an inventory was requested last, the task while it is outstanding, and what the last one found.
  inventory_asked_at  timestamptz,
  inventory_task_id   uuid,
  inventory_at        timestamptz,
  strays              json,
  UNIQUE (org_id, node_id),
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id)
) WITH (fillfactor = 60);
ALTER TABLE vm_hosts ENABLE ROW LEVEL SECURITY;
ALTER TABLE vm_hosts FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON vm_hosts TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON vm_hosts TO holdfast_system USING (true);
GRANT SELECT, UPDATE (enabled, leases, reserved_vcpus, reserved_memory_mib, reserved_disk_gib) ON vm_hosts TO holdfast_app;
GRANT SELECT, INSERT, UPDATE ON vm_hosts TO holdfast_system;

-- One row a lease. src/leases/transitions/ is the only door to `status`; the checks here repeat what its table promises.
CREATE TABLE vm_leases (
  id                  uuid PRIMARY KEY,
  org_id              uuid NOT NULL REFERENCES organizations,
  label               text,
  image_id            text NOT NULL,
  -- Of the image when the lease was requested.
  image_sha256        text NOT NULL,
  profile             text NOT NULL,
  vcpus               integer NOT NULL CHECK (vcpus > 0),
  memory_mib          integer NOT NULL CHECK (memory_mib > 0),
  disk_gib            integer NOT NULL CHECK (disk_gib > 0),
  arch                text,
  accelerator         text CHECK (accelerator IN ('kvm', 'nvmm', 'tcg')),
  ttl_seconds         integer NOT NULL CHECK (ttl_seconds > 0),
  connect_seconds     integer NOT NULL CHECK (connect_seconds > 0),
  grace_seconds       integer NOT NULL CHECK (grace_seconds >= 0),
  status              text NOT NULL CHECK (status IN ('requested', 'provisioning', 'booting', 'connected', 'running',
                        'terminating', 'terminated', 'failed', 'orphaned')),
  revision            integer NOT NULL DEFAULT 1,
  -- Counts how often it was given to a host. Each time its VM has another id, by which reports of hosts are compared.
  generation          integer NOT NULL DEFAULT 0,
  host_id             uuid,
  vm_id               uuid UNIQUE,
  launch_task_id      uuid,
  -- The result of the launch task was applied.
  launch_settled      boolean NOT NULL DEFAULT false,
  -- The outstanding one.
  terminate_task_id   uuid,
  -- Of a terminate task that failed: not before.
  terminate_after     timestamptz,
  work                text,
  -- Why it ended, or what it waits for.
  reason              json,
  -- Why each host was chosen or not when it was placed.
  placement           json,
  -- Who requested it; what follows is done on their behalf.
  actor_type          text NOT NULL,
  actor_id            uuid,
  actor_name          text NOT NULL,
  role                text NOT NULL,
  correlation_id      text NOT NULL,
  created_at          timestamptz NOT NULL DEFAULT now(),
  wait_until          timestamptz NOT NULL,
  placed_at           timestamptz,
  expires_at          timestamptz,
  booted_at           timestamptz,
  connect_deadline_at timestamptz,
  connected_at        timestamptz,
  disconnected_at     timestamptz,
  running_at          timestamptz,
  finished_at         timestamptz,
  UNIQUE (org_id, id),
  FOREIGN KEY (org_id, image_id) REFERENCES vm_images (org_id, id),
  FOREIGN KEY (org_id, host_id) REFERENCES vm_hosts (org_id, node_id),
  CHECK ((status IN ('terminated', 'failed')) = (finished_at IS NOT NULL)),
  CHECK (status NOT IN ('provisioning', 'booting', 'connected', 'running', 'terminating', 'orphaned') OR
    host_id IS NOT NULL AND vm_id IS NOT NULL AND generation > 0 AND launch_task_id IS NOT NULL
    AND placed_at IS NOT NULL AND expires_at IS NOT NULL),
  CHECK (status <> 'requested' OR host_id IS NULL AND vm_id IS NULL AND launch_task_id IS NULL AND expires_at IS NULL),
  CHECK (status <> 'provisioning' OR NOT launch_settled),
  CHECK (status <> 'booting' OR launch_settled AND connect_deadline_at IS NOT NULL),
  CHECK (status NOT IN ('connected', 'running') OR connected_at IS NOT NULL),
  CHECK (status <> 'running' OR running_at IS NOT NULL),
  CHECK (disconnected_at IS NULL OR connected_at IS NOT NULL AND status NOT IN ('requested', 'provisioning', 'booting')),
  CHECK (terminate_task_id IS NULL OR status IN ('terminating', 'orphaned')),
  CHECK (status <> 'failed' OR reason IS NOT NULL),
  CHECK (status <> 'orphaned' OR reason IS NOT NULL)
) WITH (fillfactor = 80);
CREATE INDEX vm_leases_waiting ON vm_leases (org_id, id) WHERE finished_at IS NULL AND host_id IS NULL;
CREATE INDEX vm_leases_on_host ON vm_leases (host_id, id) WHERE finished_at IS NULL AND host_id IS NOT NULL;
CREATE INDEX vm_leases_newest ON vm_leases (org_id, id DESC);
CREATE INDEX vm_leases_unsettled ON vm_leases (launch_task_id) WHERE launch_task_id IS NOT NULL AND NOT launch_settled;
CREATE INDEX vm_leases_ended ON vm_leases (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX vm_leases_of_image ON vm_leases (org_id, image_id) WHERE finished_at IS NULL;
ALTER TABLE vm_leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE vm_leases FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON vm_leases TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON vm_leases TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (status, revision, launch_settled, host_id, vm_id, launch_task_id, placed_at, expires_at,
  terminate_task_id, terminate_after, booted_at, connect_deadline_at, connected_at, disconnected_at, running_at, work,
  finished_at, reason) ON vm_leases TO holdfast_app;
GRANT SELECT, UPDATE, DELETE ON vm_leases TO holdfast_system;

-- The timeline of a lease: every change, and what came too late to change anything.
CREATE TABLE vm_lease_events (
  id          uuid PRIMARY KEY,
  lease_id    uuid NOT NULL,
  org_id      uuid NOT NULL,
  at          timestamptz NOT NULL DEFAULT clock_timestamp(),
  event       text NOT NULL,
  from_status text,
  -- Null: the state did not change.
  to_status   text,
  generation  integer NOT NULL,
  message     text,
  -- Of a placement: the VM that the host was to launch. One of an earlier placement may still be found.
  vm_id       uuid,
  FOREIGN KEY (org_id, lease_id) REFERENCES vm_leases (org_id, id) ON DELETE CASCADE
);
CREATE INDEX vm_lease_events_of ON vm_lease_events (lease_id, id);
CREATE INDEX vm_lease_events_of_vm ON vm_lease_events (vm_id) WHERE vm_id IS NOT NULL;
ALTER TABLE vm_lease_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE vm_lease_events FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON vm_lease_events TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON vm_lease_events TO holdfast_system USING (true);
GRANT SELECT, INSERT ON vm_lease_events TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON vm_lease_events TO holdfast_system;

-- VMs that a host reports and no lease has, with the task that removes each.
CREATE TABLE vm_strays (
  node_id  uuid NOT NULL,
  org_id   uuid NOT NULL,
  vm_id    uuid NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now(),
  task_id  uuid NOT NULL,
  PRIMARY KEY (node_id, vm_id),
  FOREIGN KEY (org_id, node_id) REFERENCES vm_hosts (org_id, node_id)
);
ALTER TABLE vm_strays ENABLE ROW LEVEL SECURITY;
ALTER TABLE vm_strays FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON vm_strays TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON vm_strays TO holdfast_system USING (true);
GRANT SELECT ON vm_strays TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON vm_strays TO holdfast_system;
