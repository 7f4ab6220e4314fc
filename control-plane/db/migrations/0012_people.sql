-- What ends with a person or a token, sessions that can be listed and ended, and known places of a sign-in.

-- The API token it was made with, if any: revoking that one ends this one too.
ALTER TABLE enrollment_tokens ADD COLUMN parent_id uuid REFERENCES api_tokens;
CREATE INDEX enrollment_tokens_of_parent ON enrollment_tokens (parent_id);
ALTER TABLE one_time_links ADD COLUMN parent_id uuid REFERENCES api_tokens;
CREATE INDEX one_time_links_of_parent ON one_time_links (parent_id);
CREATE INDEX one_time_links_of_user ON one_time_links (created_by);
-- A person revokes what they made in all their organizations at once.
GRANT UPDATE (revoked_at) ON api_tokens, enrollment_tokens TO holdfast_system;

ALTER TABLE sessions
  -- Of the sign-in, and of the latest request.
  ADD COLUMN address      text,
  ADD COLUMN last_address text,
  ADD COLUMN user_agent   text,
  -- Ended on purpose. The row stays for a day, because terminals that it opened are closed by it.
  ADD COLUMN ended_at     timestamptz;
GRANT UPDATE (last_address, ended_at) ON sessions TO holdfast_system;

-- The browser session that opened the terminal or attached to it last; null for a token or the local operator.
-- No foreign key: an expired session is removed, and its terminals stay.
ALTER TABLE terminal_sessions ADD COLUMN sign_in_id uuid;
ALTER TABLE terminal_tokens ADD COLUMN sign_in_id uuid;

-- Platform table: where a person has signed in from. Attempts from there are counted apart from those of strangers,
-- who can therefore not lock the account. Hashes only: of the device cookie's secret, or of the network.
CREATE TABLE known_sign_ins (
  user_id      uuid NOT NULL REFERENCES users,
  kind         text NOT NULL CHECK (kind IN ('device', 'network')),
  hash         bytea NOT NULL,
  last_used_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, kind, hash)
);
CREATE INDEX known_sign_ins_age ON known_sign_ins (last_used_at);
GRANT SELECT, INSERT, UPDATE (last_used_at), DELETE ON known_sign_ins TO holdfast_system;
