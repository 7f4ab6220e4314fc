-- Values of the policy that operators changed while the platform runs. Without a row, the setting of the process applies.

CREATE TABLE policy_values (
  key text PRIMARY KEY,
  -- As in the environment: `120`, `off`.
  value text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  -- Why it was changed, as whoever did it said; needed to weaken it.
  reason text
);
GRANT SELECT, INSERT, UPDATE, DELETE ON policy_values TO holdfast_system;

-- A shorter age also ends tokens that were issued before.
GRANT UPDATE (expires_at) ON recovery_tokens TO holdfast_system;
