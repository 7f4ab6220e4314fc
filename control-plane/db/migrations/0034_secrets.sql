-- Named secrets of organizations, each sealed with a data key of its own under the KEK (ADR 49).

CREATE TABLE secrets (
  id              uuid PRIMARY KEY,
  org_id          uuid NOT NULL REFERENCES organizations,
  name            text NOT NULL CHECK (name ~ '^[A-Za-z][A-Za-z0-9_.-]{0,63}$'),
  -- Counts values, and bound to the sealed value: an older one cannot be put back unnoticed.
  version         integer NOT NULL DEFAULT 1 CHECK (version > 0),
  -- Counts data keys.
  key_version     integer NOT NULL DEFAULT 1 CHECK (key_version > 0),
  members_may_use boolean NOT NULL DEFAULT false,
  kek_id          text NOT NULL,
  wrapped_key     bytea NOT NULL,
  sealed_value    bytea NOT NULL,
  creator_name    text NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  changer_name    text NOT NULL,
  changed_at      timestamptz NOT NULL DEFAULT now(),
  key_changed_at  timestamptz NOT NULL DEFAULT now(),
  wrapped_at      timestamptz NOT NULL DEFAULT now(),
  UNIQUE (org_id, name)
);
CREATE INDEX secrets_by_kek ON secrets (kek_id, id);
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON secrets TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON secrets TO holdfast_system USING (true);
-- The role that serves people writes what is sealed, and cannot read it.
GRANT SELECT (id, org_id, name, version, key_version, members_may_use, kek_id, creator_name, created_at, changer_name, changed_at,
  key_changed_at, wrapped_at) ON secrets TO holdfast_app;
GRANT INSERT, UPDATE, DELETE ON secrets TO holdfast_app;
GRANT SELECT, UPDATE (kek_id, wrapped_key, wrapped_at) ON secrets TO holdfast_system;

-- Which named secret a request was given. It may have been deleted since.
ALTER TABLE executions ADD COLUMN secret_id uuid;
ALTER TABLE executions ADD COLUMN secret_version integer;
ALTER TABLE executions ADD CHECK ((secret_id IS NULL) = (secret_version IS NULL));
CREATE INDEX executions_by_secret ON executions (secret_id, id) WHERE secret_id IS NOT NULL;

-- The KEKs that an api has, the first of which seals: a KEK must not be removed while a process seals with it.
ALTER TABLE processes ADD COLUMN kek_ids text[] NOT NULL DEFAULT '{}';
