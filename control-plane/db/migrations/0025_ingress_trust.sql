-- Platform table: whether each way to the node-facing listeners accepts certificates of the CA that signs those of nodes, as
-- the canaries of all apis have seen it. src/identity/ingress-trust/ writes it and decides by it.
CREATE TABLE ingress_trust (
  -- Of the environment profile, such as `node_api`.
  endpoint       text NOT NULL,
  url            text NOT NULL,
  -- That the name in it leads to; empty: to none.
  address        text NOT NULL,
  -- The ingress that a canary came through last, by its name; null: none, or not known.
  ingress        text,
  accepted_at    timestamptz,
  rejected_at    timestamptz,
  rejection      text,
  unreachable_at timestamptz,
  problem        text,
  PRIMARY KEY (endpoint, url, address),
  CHECK (coalesce(accepted_at, rejected_at, unreachable_at) IS NOT NULL),
  CHECK ((rejected_at IS NULL) = (rejection IS NULL)),
  CHECK ((unreachable_at IS NULL) = (problem IS NULL))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON ingress_trust TO holdfast_system;

-- While the control plane is suspected, notifications wait. The state in the last notification of an allocation, if that is not
-- its state any more; null: it is.
ALTER TABLE allocations ADD COLUMN notified_state text CHECK (notified_state IN
  ('normal', 'temporary', 'recovering', 'operator_action_required', 'security_action_required')
  AND notified_state <> user_state);
CREATE INDEX allocations_withheld ON allocations (id) WHERE notified_state IS NOT NULL;
GRANT UPDATE (notified_state) ON allocations TO holdfast_system;
