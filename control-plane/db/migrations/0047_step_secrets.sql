-- Secrets of steps that the worker runs itself (ADR 65). A worker asks with a key that lives for this request, in its memory alone; an api
-- answers with the secret sealed for that key, and the worker removes the row. What is left in a dump opens for nobody.

CREATE TABLE workflow_step_secrets (
  id         uuid PRIMARY KEY,
  org_id     uuid NOT NULL,
  run_id     uuid NOT NULL,
  node       text NOT NULL,
  attempt    integer NOT NULL CHECK (attempt > 0),
  public_key bytea NOT NULL,
  sealed     bytea,
  refusal    text,
  created_at timestamptz NOT NULL DEFAULT now(),
  FOREIGN KEY (org_id, run_id) REFERENCES workflow_runs (org_id, id),
  CHECK (sealed IS NULL OR refusal IS NULL)
);
CREATE INDEX workflow_step_secrets_wanted ON workflow_step_secrets (created_at) WHERE sealed IS NULL AND refusal IS NULL;
ALTER TABLE workflow_step_secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE workflow_step_secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON workflow_step_secrets TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON workflow_step_secrets TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (sealed, refusal), DELETE ON workflow_step_secrets TO holdfast_system;
