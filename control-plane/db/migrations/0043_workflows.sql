-- Workflows: a draft that changes, and published versions that do not (ADR 60).

CREATE TABLE workflows (
  id                uuid PRIMARY KEY,
  org_id            uuid NOT NULL REFERENCES organizations,
  name              text NOT NULL CHECK (name ~ '^[a-z][a-z0-9-]{0,38}[a-z0-9]$'),
  -- The draft, as it was written; valid or not.
  source            text NOT NULL CHECK (octet_length(source) <= 1048576),
  source_valid      boolean NOT NULL,
  revision          integer NOT NULL DEFAULT 1 CHECK (revision > 0),
  published_version integer CHECK (published_version > 0),
  -- The revision of the draft that was published last.
  published_revision integer CHECK (published_revision > 0),
  creator_name      text NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  changer_name      text NOT NULL,
  changed_at        timestamptz NOT NULL DEFAULT now(),
  -- Its versions are kept.
  deleted_at        timestamptz,
  UNIQUE (org_id, id),
  CHECK ((published_version IS NULL) = (published_revision IS NULL)),
  CHECK (published_revision <= revision)
);
CREATE UNIQUE INDEX workflows_by_name ON workflows (org_id, name) WHERE deleted_at IS NULL;
CREATE INDEX workflows_newest ON workflows (org_id, id DESC) WHERE deleted_at IS NULL;
ALTER TABLE workflows ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflows FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON workflows TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON workflows TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (source, source_valid, revision, published_version, published_revision, changer_name, changed_at,
  deleted_at) ON workflows TO holdfast_app;
GRANT SELECT ON workflows TO holdfast_system;

-- Nobody has the right to change or remove a version.
CREATE TABLE workflow_versions (
  workflow_id    uuid NOT NULL,
  org_id         uuid NOT NULL,
  version        integer NOT NULL CHECK (version > 0),
  source         text NOT NULL,
  publisher_name text NOT NULL,
  published_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workflow_id, version),
  FOREIGN KEY (org_id, workflow_id) REFERENCES workflows (org_id, id)
);
ALTER TABLE workflow_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_versions FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON workflow_versions TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON workflow_versions TO holdfast_system USING (true);
GRANT SELECT, INSERT ON workflow_versions TO holdfast_app;
GRANT SELECT ON workflow_versions TO holdfast_system;
