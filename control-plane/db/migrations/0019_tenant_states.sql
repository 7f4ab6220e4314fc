-- What tenants are told about the node behind an allocation. src/drift/tenants/ decides and writes it.

ALTER TABLE allocations
  ADD COLUMN user_state text NOT NULL DEFAULT 'normal' CHECK (user_state IN
    ('normal', 'temporary', 'recovering', 'operator_action_required', 'security_action_required')),
  -- Null: as long as the allocation exists.
  ADD COLUMN user_state_since timestamptz;
CREATE INDEX allocations_affected ON allocations (node_id) WHERE user_state <> 'normal';
GRANT UPDATE (user_state, user_state_since) ON allocations TO holdfast_system;

-- Each change of an allocation's user state, with the words that were used. Bounded: the newest of an allocation.
CREATE TABLE allocation_notifications (
  id            uuid PRIMARY KEY,
  org_id        uuid NOT NULL,
  project_id    uuid NOT NULL,
  allocation_id uuid NOT NULL,
  state         text NOT NULL CHECK (state IN
    ('normal', 'temporary', 'recovering', 'operator_action_required', 'security_action_required')),
  title         text NOT NULL,
  message       text NOT NULL,
  at            timestamptz NOT NULL DEFAULT now(),
  -- For operators. No foreign key: incidents are removed on their own.
  incident_id   uuid,
  FOREIGN KEY (org_id, allocation_id) REFERENCES allocations (org_id, id)
);
CREATE INDEX allocation_notifications_newest ON allocation_notifications (allocation_id, id DESC);
CREATE INDEX allocation_notifications_old ON allocation_notifications (at);
ALTER TABLE allocation_notifications ENABLE ROW LEVEL SECURITY;
ALTER TABLE allocation_notifications FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON allocation_notifications TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON allocation_notifications TO holdfast_system USING (true);
GRANT SELECT ON allocation_notifications TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON allocation_notifications TO holdfast_system;

-- Allocations on nodes that already have a cause get their state with the next classification.
ALTER TABLE node_verdicts NO FORCE ROW LEVEL SECURITY;
UPDATE node_verdicts SET review_at = now() WHERE user_state <> 'normal';
ALTER TABLE node_verdicts FORCE ROW LEVEL SECURITY;
