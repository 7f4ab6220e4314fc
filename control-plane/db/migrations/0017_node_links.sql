-- The connection that the last heartbeat of a node came over, and how it ended: an observation that does not have to wait
-- until heartbeats are missing.

ALTER TABLE node_presence
  -- Of a stream; null: the agent polls.
  ADD COLUMN stream_id        uuid,
  ADD COLUMN disconnected_at  timestamptz,
  ADD COLUMN disconnected_why text;
