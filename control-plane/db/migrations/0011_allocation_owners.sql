-- Allocations have an owner, can be shared for a limited time, and are limited in number.
-- src/allocations/access.ts decides who reaches an allocation.

ALTER TABLE api_tokens ADD CONSTRAINT api_tokens_of_org UNIQUE (org_id, id);

ALTER TABLE allocations
  -- A person; or an API token without a person behind it (made by the local operator). Neither: only
  -- administrators reach it.
  ADD COLUMN owner_user_id  uuid REFERENCES users,
  ADD COLUMN owner_token_id uuid,
  -- The name at that time: operators and former members are not visible to the organization.
  ADD COLUMN owner_name     text,
  -- Who requested the change under way (create or release). Tasks that are enqueued again are audited as theirs.
  ADD COLUMN actor_type     text,
  ADD COLUMN actor_id       uuid,
  ADD COLUMN actor_name     text,
  ADD COLUMN role           text,
  ADD FOREIGN KEY (org_id, owner_token_id) REFERENCES api_tokens (org_id, id),
  ADD CHECK (num_nonnulls(owner_user_id, owner_token_id) <= 1),
  ADD CHECK ((num_nonnulls(owner_user_id, owner_token_id) = 1) = (owner_name IS NOT NULL));

-- The allocation that a task works for, so that the task is visible to whoever reaches the allocation.
ALTER TABLE tasks ADD COLUMN allocation_id uuid;

-- The owner of the tables is not exempt from row-level security; without policies for it, it would see no rows.
ALTER TABLE allocations NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tasks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_events NO FORCE ROW LEVEL SECURITY;
ALTER TABLE api_tokens NO FORCE ROW LEVEL SECURITY;
ALTER TABLE users NO FORCE ROW LEVEL SECURITY;

UPDATE tasks SET allocation_id = (params ->> 'allocation_id')::uuid WHERE params ->> 'allocation_id' IS NOT NULL;

-- Who created an allocation stands in the audit.
WITH created AS (
  SELECT DISTINCT ON (target_id) target_id, org_id, actor_type, actor_id, actor_name
  FROM audit_events WHERE action = 'allocation.create' AND result = 'allowed' ORDER BY target_id, id
), owners AS (
  SELECT c.target_id, coalesce(u.id, t.created_by) AS user_id,
    CASE WHEN t.created_by IS NULL THEN t.id END AS token_id,
    CASE WHEN t.created_by IS NULL THEN c.actor_name ELSE t.creator_name END AS name
  FROM created c
  LEFT JOIN users u ON c.actor_type = 'user' AND u.id = c.actor_id
  LEFT JOIN api_tokens t ON c.actor_type = 'token' AND t.id = c.actor_id AND t.org_id = c.org_id
  WHERE u.id IS NOT NULL OR t.id IS NOT NULL
)
UPDATE allocations a SET owner_user_id = o.user_id, owner_token_id = o.token_id, owner_name = o.name
FROM owners o WHERE o.target_id = a.id::text;

WITH latest AS (
  SELECT DISTINCT ON (target_id) target_id, actor_type, actor_id, actor_name, role
  FROM audit_events WHERE action IN ('allocation.create', 'allocation.release') AND result = 'allowed'
  ORDER BY target_id, id DESC
)
UPDATE allocations a
SET actor_type = l.actor_type, actor_id = l.actor_id, actor_name = l.actor_name, role = l.role
FROM latest l WHERE l.target_id = a.id::text;
UPDATE allocations SET actor_type = 'system', actor_name = created_by, role = 'system' WHERE actor_type IS NULL;

ALTER TABLE allocations FORCE ROW LEVEL SECURITY;
ALTER TABLE tasks FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_events FORCE ROW LEVEL SECURITY;
ALTER TABLE api_tokens FORCE ROW LEVEL SECURITY;
ALTER TABLE users FORCE ROW LEVEL SECURITY;

ALTER TABLE allocations
  ALTER COLUMN actor_type SET NOT NULL,
  ALTER COLUMN actor_name SET NOT NULL,
  ALTER COLUMN role SET NOT NULL,
  ADD CHECK (actor_type IN ('user', 'token', 'local_operator', 'system')),
  ADD CHECK ((actor_type IN ('user', 'token')) = (actor_id IS NOT NULL));
CREATE INDEX allocations_of_owner ON allocations (org_id, owner_user_id) WHERE status <> 'released';
GRANT UPDATE (owner_user_id, owner_token_id, owner_name, actor_type, actor_id, actor_name, role)
  ON allocations TO holdfast_app;

-- What an owner lets another member do, until it expires. Revoking removes the row; so does leaving the
-- organization. The audit keeps the history.
CREATE TABLE allocation_grants (
  org_id        uuid NOT NULL,
  allocation_id uuid NOT NULL,
  grantee_id    uuid NOT NULL,
  level         text NOT NULL CHECK (level IN ('view', 'use')),
  granted_by    text NOT NULL,
  granted_at    timestamptz NOT NULL DEFAULT now(),
  expires_at    timestamptz NOT NULL,
  PRIMARY KEY (allocation_id, grantee_id),
  FOREIGN KEY (org_id, allocation_id) REFERENCES allocations (org_id, id),
  FOREIGN KEY (org_id, grantee_id) REFERENCES memberships (org_id, user_id) ON DELETE CASCADE,
  CHECK (expires_at > granted_at AND expires_at <= granted_at + interval '2160 hours')
);
CREATE INDEX allocation_grants_of_member ON allocation_grants (org_id, grantee_id);
CREATE INDEX allocation_grants_expiry ON allocation_grants (expires_at);
ALTER TABLE allocation_grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE allocation_grants FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON allocation_grants TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON allocation_grants TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (level, granted_by, granted_at, expires_at), DELETE ON allocation_grants TO holdfast_app;
GRANT SELECT, DELETE ON allocation_grants TO holdfast_system;

-- How many allocations may exist at a time: in the organization, for each owner, and for one member instead of that.
ALTER TABLE organizations
  ADD COLUMN allocation_limit integer NOT NULL DEFAULT 500 CHECK (allocation_limit BETWEEN 0 AND 100000),
  ADD COLUMN owner_allocation_limit integer NOT NULL DEFAULT 25 CHECK (owner_allocation_limit BETWEEN 0 AND 100000);
ALTER TABLE memberships
  ADD COLUMN allocation_limit integer CHECK (allocation_limit BETWEEN 0 AND 100000);
GRANT UPDATE (allocation_limit, owner_allocation_limit) ON organizations TO holdfast_app;
GRANT UPDATE (allocation_limit) ON memberships TO holdfast_app;
