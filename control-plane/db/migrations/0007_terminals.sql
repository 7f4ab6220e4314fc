-- Terminals: what the api knows of gateways, of shells on nodes, and of the tokens that lead to them.

-- Platform table: the gateways that are there, by their own word every few seconds.
CREATE TABLE gateways (
  id           uuid PRIMARY KEY,
  terminal_url text NOT NULL,
  node_url     text NOT NULL,
  sessions     integer NOT NULL,
  started_at   timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT, INSERT, UPDATE, DELETE ON gateways TO holdfast_system;

ALTER TABLE allocations ADD CONSTRAINT allocations_of_org UNIQUE (org_id, id);

-- src/terminals/state.ts is the only door to `state`.
CREATE TABLE terminal_sessions (
  id               uuid PRIMARY KEY,
  org_id           uuid NOT NULL,
  allocation_id    uuid NOT NULL,
  node_id          uuid NOT NULL,
  state            text NOT NULL DEFAULT 'opening' CHECK (state IN ('opening', 'open', 'closed', 'failed')),
  -- Who opened it: nobody else attaches to it, and what happens to it later is audited under this name.
  user_key         text NOT NULL,
  actor_type       text NOT NULL CHECK (actor_type IN ('user', 'token', 'local_operator')),
  actor_id         uuid,
  actor_name       text NOT NULL,
  role             text NOT NULL,
  correlation_id   text NOT NULL,
  -- When each step of the readiness chain was reached.
  chain            jsonb NOT NULL DEFAULT '{}',
  -- The last one: code, detail, at.
  failure          json,
  -- No foreign key: the history of tasks is removed earlier.
  task_id          uuid,
  -- Which gateway speaks for it; null until its token was used.
  gateway_id       uuid,
  attached         boolean NOT NULL DEFAULT false,
  -- Of the last attach or detach, by the gateway's clock.
  attachment_at    timestamptz,
  created_at       timestamptz NOT NULL DEFAULT now(),
  -- Ready or failed by then.
  opening_until    timestamptz NOT NULL,
  ends_by          timestamptz NOT NULL,
  -- How long a shell lives that nobody is connected to.
  detached_seconds integer NOT NULL,
  heard_at         timestamptz NOT NULL DEFAULT now(),
  -- It is to end, and why; its gateway is told until it says that it has.
  close_code       text,
  close_asked_at   timestamptz,
  closed_at        timestamptz,
  close_reason     text,
  exit             json,
  bytes_in         bigint,
  bytes_out        bigint,
  UNIQUE (org_id, id),
  FOREIGN KEY (org_id, allocation_id) REFERENCES allocations (org_id, id),
  FOREIGN KEY (org_id, node_id) REFERENCES nodes (org_id, id),
  CHECK ((actor_type = 'local_operator') = (actor_id IS NULL)),
  CHECK ((state IN ('closed', 'failed')) = (closed_at IS NOT NULL)),
  CHECK (state <> 'failed' OR failure IS NOT NULL),
  CHECK ((close_code IS NULL) = (close_asked_at IS NULL))
);
CREATE INDEX terminal_sessions_newest ON terminal_sessions (org_id, id DESC);
CREATE INDEX terminal_sessions_of_allocation ON terminal_sessions (allocation_id, id DESC);
CREATE INDEX terminal_sessions_of_node ON terminal_sessions (node_id, id DESC);
CREATE INDEX terminal_sessions_live ON terminal_sessions (id) WHERE state IN ('opening', 'open');
ALTER TABLE terminal_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE terminal_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON terminal_sessions TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON terminal_sessions TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (state, chain, failure, attached, attachment_at, heard_at, close_code, close_asked_at,
  closed_at, close_reason, exit, bytes_in, bytes_out) ON terminal_sessions TO holdfast_app;
GRANT SELECT, UPDATE, DELETE ON terminal_sessions TO holdfast_system;

-- Good for one connection to a gateway. The secret itself is known to its holder alone.
CREATE TABLE terminal_tokens (
  id             uuid PRIMARY KEY,
  org_id         uuid NOT NULL,
  session_id     uuid NOT NULL,
  secret_hash    bytea NOT NULL UNIQUE,
  user_key       text NOT NULL,
  purpose        text NOT NULL CHECK (purpose IN ('open', 'attach')),
  -- Output is wanted from here on; null: all that is kept.
  from_offset    bigint,
  correlation_id text NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  expires_at     timestamptz NOT NULL,
  used_at        timestamptz,
  FOREIGN KEY (org_id, session_id) REFERENCES terminal_sessions (org_id, id) ON DELETE CASCADE
);
CREATE INDEX terminal_tokens_of_session ON terminal_tokens (session_id);
CREATE INDEX terminal_tokens_unused ON terminal_tokens (user_key, expires_at) WHERE used_at IS NULL;
CREATE INDEX terminal_tokens_expiry ON terminal_tokens (expires_at);
ALTER TABLE terminal_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE terminal_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON terminal_tokens TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON terminal_tokens TO holdfast_system USING (true);
GRANT SELECT, INSERT ON terminal_tokens TO holdfast_app;
GRANT SELECT, UPDATE (used_at), DELETE ON terminal_tokens TO holdfast_system;
