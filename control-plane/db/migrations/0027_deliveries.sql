-- What leaves the product when an incident opens or is over, to whom, and whether it arrived; and the repeated failures that
-- the audit sums up.

-- Failures that have not recovered yet, by what the audit counts as one. src/audit/failures/ decides and writes it.
CREATE TABLE audit_failures (
  id              uuid PRIMARY KEY,
  -- Null: of the platform itself.
  org_id          uuid REFERENCES organizations,
  actor_type      text NOT NULL,
  actor_id        uuid,
  app_instance_id uuid,
  -- A certificate's serial, a receiver's id: what was used, never a secret.
  credential_id   text,
  action          text NOT NULL,
  reason          text NOT NULL,
  first_seen_at   timestamptz NOT NULL DEFAULT now(),
  last_seen_at    timestamptz NOT NULL DEFAULT now(),
  count           bigint NOT NULL CHECK (count > 0),
  -- Rows that the audit has about it, and when the last of them was written.
  reports         integer NOT NULL DEFAULT 1,
  reported_at     timestamptz NOT NULL DEFAULT now(),
  UNIQUE NULLS NOT DISTINCT (action, actor_id, actor_type, app_instance_id, credential_id, reason, org_id)
);
CREATE INDEX audit_failures_old ON audit_failures (last_seen_at);
ALTER TABLE audit_failures ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_failures FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON audit_failures TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON audit_failures TO holdfast_system USING (true);
GRANT SELECT ON audit_failures TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON audit_failures TO holdfast_system;

-- Nothing reads it any more: evidence has what the node's page shows, and audit_failures what the audit has.
DROP TABLE node_refusals;

-- To whom messages of an organization go. What is needed to send to a webhook, its URL and its secret, is sealed.
CREATE TABLE notification_receivers (
  id           uuid PRIMARY KEY,
  org_id       uuid NOT NULL REFERENCES organizations,
  kind         text NOT NULL CHECK (kind IN ('webhook', 'mail')),
  -- For people: of a URL without what may be a secret in it.
  address      text NOT NULL,
  sealed       bytea,
  creator_name text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  -- Kept as long as deliveries name it. Nothing can be sent to it any more.
  removed_at   timestamptz,
  UNIQUE (org_id, id),
  CHECK ((sealed IS NOT NULL) = (kind = 'webhook' AND removed_at IS NULL))
);
CREATE INDEX notification_receivers_newest ON notification_receivers (org_id, id DESC);
CREATE UNIQUE INDEX notification_receivers_mail ON notification_receivers (org_id, lower(address))
  WHERE kind = 'mail' AND removed_at IS NULL;
ALTER TABLE notification_receivers ENABLE ROW LEVEL SECURITY;
ALTER TABLE notification_receivers FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON notification_receivers TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON notification_receivers TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (sealed, removed_at) ON notification_receivers TO holdfast_app;
GRANT SELECT, DELETE ON notification_receivers TO holdfast_system;

-- One message to one receiver. Its id is sent along, so that a receiver can recognise a repetition.
CREATE TABLE notification_deliveries (
  id              uuid PRIMARY KEY,
  -- Null, as receiver_id: to a receiver of the installation itself, which settings name.
  org_id          uuid REFERENCES organizations,
  receiver_id     uuid,
  kind            text NOT NULL CHECK (kind IN ('webhook', 'mail')),
  event           text NOT NULL,
  -- What it is about. Messages about one subject reach a receiver in their order.
  subject         text NOT NULL,
  message         json NOT NULL,
  state           text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed', 'cancelled')),
  created_at      timestamptz NOT NULL DEFAULT now(),
  attempts        integer NOT NULL DEFAULT 0,
  -- Also the end of a claim: whoever claimed it and died loses it then.
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  attempted_at    timestamptz,
  delivered_at    timestamptz,
  -- What the receiver returned the last time, shortened; or why it was not reached.
  answer          text,
  CHECK ((state = 'delivered') = (delivered_at IS NOT NULL)),
  CHECK (org_id IS NOT NULL OR receiver_id IS NULL),
  FOREIGN KEY (org_id, receiver_id) REFERENCES notification_receivers (org_id, id)
);
CREATE INDEX notification_deliveries_newest ON notification_deliveries (org_id, id DESC);
CREATE INDEX notification_deliveries_due ON notification_deliveries (next_attempt_at) WHERE state = 'pending';
CREATE INDEX notification_deliveries_of_receiver ON notification_deliveries (receiver_id, id DESC);
CREATE INDEX notification_deliveries_old ON notification_deliveries (created_at);
ALTER TABLE notification_deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE notification_deliveries FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON notification_deliveries TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON notification_deliveries TO holdfast_system USING (true);
-- A test message is requested by a person; removing a receiver cancels what it would still get.
GRANT SELECT, INSERT, UPDATE (state) ON notification_deliveries TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON notification_deliveries TO holdfast_system;

-- What receivers have been sent about an incident. The messages and this are written in one transaction.
ALTER TABLE incidents NO FORCE ROW LEVEL SECURITY;
ALTER TABLE incidents
  ADD COLUMN announced text NOT NULL DEFAULT 'nothing' CHECK (announced IN ('nothing', 'opened', 'recovered'));
ALTER TABLE platform_incidents
  ADD COLUMN announced text NOT NULL DEFAULT 'nothing' CHECK (announced IN ('nothing', 'opened', 'recovered'));
-- What was over before there were messages is no news.
UPDATE incidents SET announced = 'recovered' WHERE closed_at IS NOT NULL;
UPDATE platform_incidents SET announced = 'recovered' WHERE closed_at IS NOT NULL;
ALTER TABLE incidents FORCE ROW LEVEL SECURITY;
CREATE INDEX incidents_to_announce ON incidents (id)
  WHERE (announced = 'nothing' OR (announced = 'recovered' AND closed_at IS NULL)) AND part_of IS NULL
    AND (severity = 'P0' OR user_state = 'security_action_required');
CREATE INDEX incidents_announced ON incidents (id) WHERE announced = 'opened';
-- When a message about these was last queued: many nodes with one reason are one message, not one each.
CREATE TABLE notification_topics (
  org_id    uuid NOT NULL REFERENCES organizations,
  topic     text NOT NULL,
  queued_at timestamptz NOT NULL,
  PRIMARY KEY (org_id, topic)
);
ALTER TABLE notification_topics ENABLE ROW LEVEL SECURITY;
ALTER TABLE notification_topics FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON notification_topics TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON notification_topics TO holdfast_system USING (true);
GRANT SELECT ON notification_topics TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON notification_topics TO holdfast_system;

-- Platform table: round trips of a signed task through the canary node, for the outside monitor. One row.
CREATE TABLE canary_round_trips (
  only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  node_id       uuid,
  succeeded_at  timestamptz,
  -- Since the last audit row about them, which is written once a day.
  unaudited     integer NOT NULL DEFAULT 0,
  first_at      timestamptz,
  audited_at    timestamptz
);
GRANT SELECT, INSERT, UPDATE ON canary_round_trips TO holdfast_system;
