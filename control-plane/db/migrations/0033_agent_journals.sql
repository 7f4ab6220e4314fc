-- Which journal of an agent a request was sent to: no other one is sent it, because only that one knows whether it ran (ADR 46).

-- Of its newest connection. Null: the agent names none.
ALTER TABLE execution_agents ADD COLUMN journal_id uuid;
-- When a connection with another journal was open beside the newest one.
ALTER TABLE execution_agents ADD COLUMN other_journal_seen_at timestamptz;

-- Of the connection by which it was sent last.
ALTER TABLE executions ADD COLUMN journal_id uuid;
GRANT UPDATE (journal_id) ON executions TO holdfast_app;
