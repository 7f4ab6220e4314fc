-- Roles, tenants and people. Run as the owner.
--
-- holdfast_app     tenant requests. Row-level security shows it one organization at a time: the one
--                  named by the transaction-local setting holdfast.org_id. Unset means no rows.
-- holdfast_system  sign-in, node API, reconcilers. Sees all organizations by policies that name it;
--                  it has no BYPASSRLS.
-- Both are group roles without login. The owner, and the embedded database's runtime login, become them.

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'holdfast_app') THEN
    CREATE ROLE holdfast_app NOLOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'holdfast_system') THEN
    CREATE ROLE holdfast_system NOLOGIN;
  END IF;
  -- Whoever made a role may still have to grant it to themselves before they can become it.
  BEGIN
    SET LOCAL ROLE holdfast_app;
    SET LOCAL ROLE NONE;
    SET LOCAL ROLE holdfast_system;
    SET LOCAL ROLE NONE;
  EXCEPTION WHEN insufficient_privilege THEN
    BEGIN
      EXECUTE format('GRANT holdfast_app, holdfast_system TO %I', session_user);
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE EXCEPTION 'the roles holdfast_app and holdfast_system exist, and % may not become them', session_user
        USING HINT = format('As a superuser run: GRANT holdfast_app, holdfast_system TO %I', session_user);
    END;
  END;
END $$;

GRANT USAGE ON SCHEMA holdfast TO holdfast_app, holdfast_system;
-- Made by the migration runner before this file; readiness asks it.
GRANT SELECT ON schema_migrations TO holdfast_system;

-- The organization this transaction acts in. NULL compares as unknown, so unset shows nothing.
CREATE FUNCTION current_org() RETURNS uuid
  LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT nullif(current_setting('holdfast.org_id', true), '')::uuid $$;

-- Platform table: exactly one row, made here. Its id names cookies, so that two installations on
-- one host name do not sign each other out.
CREATE TABLE installation (
  only_one   boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  id         uuid NOT NULL DEFAULT gen_random_uuid(),
  created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO installation DEFAULT VALUES;
GRANT SELECT ON installation TO holdfast_system;

CREATE TABLE organizations (
  id         uuid PRIMARY KEY,
  slug       text NOT NULL UNIQUE CHECK (slug ~ '^[a-z][a-z0-9-]{0,38}[a-z0-9]$'),
  name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
  created_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE organizations ENABLE ROW LEVEL SECURITY;
ALTER TABLE organizations FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON organizations TO holdfast_app USING (id = current_org());
CREATE POLICY system ON organizations TO holdfast_system USING (true);
GRANT SELECT, UPDATE (name) ON organizations TO holdfast_app;
GRANT SELECT, INSERT ON organizations TO holdfast_system;

CREATE TABLE projects (
  id         uuid PRIMARY KEY,
  org_id     uuid NOT NULL REFERENCES organizations,
  slug       text NOT NULL CHECK (slug ~ '^[a-z][a-z0-9-]{0,38}[a-z0-9]$'),
  name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (org_id, slug)
);
CREATE INDEX projects_newest ON projects (org_id, id DESC);
ALTER TABLE projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE projects FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON projects TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON projects TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (name), DELETE ON projects TO holdfast_app;
GRANT SELECT, INSERT ON projects TO holdfast_system;

-- Platform table: a person may belong to several organizations. The application role sees name and
-- email of the present organization's members and nothing else (policy below, columns granted).
CREATE TABLE users (
  id            uuid PRIMARY KEY,
  email         text NOT NULL UNIQUE CHECK (email = lower(email)),
  name          text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  password_hash text NOT NULL,
  operator      boolean NOT NULL DEFAULT false,
  created_at    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE memberships (
  org_id    uuid NOT NULL REFERENCES organizations,
  user_id   uuid NOT NULL REFERENCES users,
  role      text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
  joined_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, user_id)
);
CREATE INDEX memberships_of_user ON memberships (user_id);
ALTER TABLE memberships ENABLE ROW LEVEL SECURITY;
ALTER TABLE memberships FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON memberships TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON memberships TO holdfast_system USING (true);
GRANT SELECT, UPDATE (role), DELETE ON memberships TO holdfast_app;
GRANT SELECT, INSERT ON memberships TO holdfast_system;

ALTER TABLE users ENABLE ROW LEVEL SECURITY;
ALTER TABLE users FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON users TO holdfast_app
  USING (EXISTS (SELECT FROM memberships m WHERE m.user_id = users.id AND m.org_id = current_org()));
CREATE POLICY system ON users TO holdfast_system USING (true);
GRANT SELECT (id, email, name) ON users TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (name, password_hash, operator) ON users TO holdfast_system;

-- Platform table: browser sessions, found by the hash of their secret.
CREATE TABLE sessions (
  id           uuid PRIMARY KEY,
  user_id      uuid NOT NULL REFERENCES users,
  secret_hash  bytea NOT NULL UNIQUE,
  created_at   timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz NOT NULL
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
GRANT SELECT, INSERT, UPDATE (last_seen_at), DELETE ON sessions TO holdfast_system;

CREATE TABLE api_tokens (
  id           uuid PRIMARY KEY,
  org_id       uuid NOT NULL REFERENCES organizations,
  name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
  secret_hash  bytea NOT NULL UNIQUE,
  role         text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
  scopes       text[],
  -- The person it ends with, NULL for the local operator; and what they were called then, because an
  -- operator or a former member is not visible to the organization.
  created_by   uuid REFERENCES users,
  creator_name text NOT NULL,
  -- The token it was made with, if any: revoking that one revokes this one too.
  parent_id    uuid REFERENCES api_tokens,
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  last_used_at timestamptz,
  revoked_at   timestamptz
);
CREATE INDEX api_tokens_newest ON api_tokens (org_id, id DESC);
CREATE INDEX api_tokens_of_user ON api_tokens (created_by);
CREATE INDEX api_tokens_of_parent ON api_tokens (parent_id);
ALTER TABLE api_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON api_tokens TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON api_tokens TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (revoked_at) ON api_tokens TO holdfast_app;
GRANT SELECT, UPDATE (last_used_at) ON api_tokens TO holdfast_system;

-- One-time links. Those of an organization are its invitations; org_id NULL are administrators' links.
CREATE TABLE one_time_links (
  id          uuid PRIMARY KEY,
  org_id      uuid REFERENCES organizations,
  purpose     text NOT NULL CHECK (purpose IN ('first_admin', 'sign_in', 'invitation')),
  secret_hash bytea NOT NULL UNIQUE,
  user_id     uuid REFERENCES users,
  email       text,
  role        text CHECK (role IN ('owner', 'admin', 'member')),
  -- Who invited, NULL for the local operator: an invitation is worth what its maker may still grant.
  created_by  uuid REFERENCES users,
  created_at  timestamptz NOT NULL DEFAULT now(),
  expires_at  timestamptz NOT NULL,
  used_at     timestamptz,
  replaced_at timestamptz,
  CHECK ((purpose = 'invitation') = (org_id IS NOT NULL)),
  CHECK (purpose <> 'invitation' OR (email IS NOT NULL AND role IS NOT NULL)),
  CHECK (purpose <> 'sign_in' OR user_id IS NOT NULL)
);
-- At most one live link for each thing it could open.
CREATE UNIQUE INDEX one_time_links_live_admin ON one_time_links (purpose, coalesce(user_id, '00000000-0000-0000-0000-000000000000'))
  WHERE org_id IS NULL AND used_at IS NULL AND replaced_at IS NULL;
CREATE UNIQUE INDEX one_time_links_live_invitation ON one_time_links (org_id, email)
  WHERE used_at IS NULL AND replaced_at IS NULL;
CREATE INDEX one_time_links_expiry ON one_time_links (expires_at);
ALTER TABLE one_time_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE one_time_links FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON one_time_links TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON one_time_links TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (replaced_at) ON one_time_links TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (used_at, replaced_at), DELETE ON one_time_links TO holdfast_system;
