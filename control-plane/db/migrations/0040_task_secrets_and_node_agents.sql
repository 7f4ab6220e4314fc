-- Secrets of tasks, sealed with the id of their task; they are erased when the task ends (ADR 56).

ALTER TABLE tasks ADD COLUMN sealed_secrets bytea;
ALTER TABLE tasks ADD CHECK (sealed_secrets IS NULL OR finished_at IS NULL);
GRANT UPDATE (sealed_secrets) ON tasks TO holdfast_app;

-- Nodes that run steps with their own identity, an agent each. One that was revoked stays, so that its node does not pair again.
ALTER TABLE execution_agents ADD COLUMN node_id uuid REFERENCES nodes;
CREATE UNIQUE INDEX execution_agents_by_node ON execution_agents (node_id) WHERE node_id IS NOT NULL;
