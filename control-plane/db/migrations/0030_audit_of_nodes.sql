-- What was done to a node before its incident was opened is a part of the incident's story. By the database's time: the ids
-- of a process whose clock was set back are ahead of it.

CREATE INDEX audit_events_of_node ON audit_events (target_id, at) WHERE target_type = 'node' AND incident_id IS NULL;
