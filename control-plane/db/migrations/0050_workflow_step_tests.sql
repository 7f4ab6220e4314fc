-- The document of the test of a step is kept like a version, under a number below zero: as immutable, and never published.

ALTER TABLE workflow_versions DROP CONSTRAINT workflow_versions_version_check;
ALTER TABLE workflow_versions ADD CONSTRAINT workflow_versions_version_check CHECK (version <> 0);
