-- Executions: steps of workflows that run on agents in private networks, with the agents and how they are paired (ADR 46).

-- By which agents reach the gateway; null: it does not serve them.
ALTER TABLE gateways ADD COLUMN execution_url text;

-- Pairs one agent, once. The secret itself is known to its holder alone.
CREATE TABLE execution_pairing_tokens (
  id           uuid PRIMARY KEY,
  org_id       uuid NOT NULL REFERENCES organizations,
  secret_hash  bytea NOT NULL UNIQUE,
  created_by   uuid REFERENCES users,
  creator_name text NOT NULL,
  parent_id    uuid REFERENCES api_tokens,
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz NOT NULL,
  revoked_at   timestamptz,
  used_at      timestamptz,
  -- The agent that was paired with it.
  agent_id     uuid,
  CHECK ((used_at IS NULL) = (agent_id IS NULL))
);
CREATE INDEX execution_pairing_tokens_of_user ON execution_pairing_tokens (created_by);
CREATE INDEX execution_pairing_tokens_of_parent ON execution_pairing_tokens (parent_id);
CREATE INDEX execution_pairing_tokens_expiry ON execution_pairing_tokens (expires_at);
ALTER TABLE execution_pairing_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE execution_pairing_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON execution_pairing_tokens TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON execution_pairing_tokens TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (revoked_at) ON execution_pairing_tokens TO holdfast_app;
GRANT SELECT, UPDATE (revoked_at, used_at, agent_id), DELETE ON execution_pairing_tokens TO holdfast_system;

-- Every statement that changes `in_flight` locks the agent before the executions, and agents in the order of their ids:
-- so no two of them wait for each other.
CREATE TABLE execution_agents (
  id                 uuid PRIMARY KEY,
  org_id             uuid NOT NULL REFERENCES organizations,
  -- Of its host; several agents may have the same.
  name               text NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
  token_hash         bytea NOT NULL UNIQUE,
  -- Who created its pairing token.
  creator_name       text NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  revoked_at         timestamptz,
  agent_version      text NOT NULL,
  -- Null until it has connected; 0: an agent of another system.
  protocol_version   integer CHECK (protocol_version >= 0),
  kinds              text[] NOT NULL,
  -- Null: not limited to some.
  connectors         text[],
  tags               text[] NOT NULL,
  max_in_flight      integer NOT NULL CHECK (max_in_flight > 0),
  draining           boolean NOT NULL DEFAULT false,
  -- Its newest connection, which gets new work, and the gateway that has it.
  gateway_id         uuid,
  session_id         uuid,
  session_seen_at    timestamptz,
  -- The last one that was closed: a touch that was on its way does not open it again.
  closed_session_id  uuid,
  -- On any connection.
  last_seen_at       timestamptz,
  -- How many requests it has: as many as rows of `executions` with it that have not ended.
  in_flight          integer NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
  last_dispatched_at timestamptz,
  UNIQUE (org_id, id),
  CHECK ((session_id IS NULL) = (gateway_id IS NULL) AND (session_id IS NULL) = (session_seen_at IS NULL)),
  -- Nothing is given to an agent whose token is no longer accepted.
  CHECK (revoked_at IS NULL OR session_id IS NULL AND in_flight = 0)
) WITH (fillfactor = 60);
ALTER TABLE execution_agents ENABLE ROW LEVEL SECURITY;
ALTER TABLE execution_agents FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON execution_agents TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON execution_agents TO holdfast_system USING (true);
GRANT SELECT, UPDATE (revoked_at, gateway_id, session_id, session_seen_at, closed_session_id, in_flight)
  ON execution_agents TO holdfast_app;
GRANT SELECT, INSERT, UPDATE ON execution_agents TO holdfast_system;

-- One row a request. src/executions/transitions/ is the only door to `status`; the checks here repeat what its table promises.
CREATE TABLE executions (
  id                  uuid PRIMARY KEY,
  org_id              uuid NOT NULL REFERENCES organizations,
  -- `runId:nodeId:attemptCount`, as dispatchers name it: the same request never runs twice.
  request_id          text NOT NULL UNIQUE,
  run_id              text NOT NULL,
  workflow_id         text NOT NULL,
  step_id             text NOT NULL,
  step_type           text NOT NULL,
  attempt             integer NOT NULL,
  -- For whom the dispatcher requested it; a person of the workflow system.
  user_id             uuid NOT NULL,
  kind                text NOT NULL,
  -- A shell task, whose result has an exit code if it ran.
  shell               boolean NOT NULL,
  -- Of a connector's action.
  connector           text,
  selector_tag        text,
  selector_agent_id   uuid,
  -- Erased with the output.
  payload             json,
  -- Sealed with the request id as associated data, and erased when the agent has it for certain or the request has ended.
  sealed_secret       bytea,
  timeout_ms          integer NOT NULL CHECK (timeout_ms > 0),
  status              text NOT NULL CHECK (status IN ('pending', 'dispatched', 'running', 'succeeded', 'failed', 'cancelled', 'unplaced')),
  revision            integer NOT NULL DEFAULT 1,
  -- Counts how often it was given to an agent; what another delivery reports is evidence only.
  generation          integer NOT NULL DEFAULT 0,
  agent_id            uuid,
  -- The agents that said they did not start it.
  declined_by         uuid[] NOT NULL DEFAULT '{}',
  -- The connection by which it was sent. Null: it was not sent yet. An agent of another system is sent it once.
  session_id          uuid,
  signature           text,
  -- Until then it may wait for an agent.
  wait_until          timestamptz,
  deadline_at         timestamptz,
  lease_until         timestamptz,
  progress            json,
  output              json,
  output_erased_at    timestamptz,
  error               text,
  -- Ended by its agent's own result: the same result again is a repetition, not late.
  reported            boolean NOT NULL DEFAULT false,
  cancel_requested_at timestamptz,
  -- The gateway that asked for it, and whether another one did, too.
  asked_by            uuid NOT NULL,
  asked_elsewhere     boolean NOT NULL DEFAULT false,
  -- How many pieces of its output are stored, and their size.
  output_chunks       integer NOT NULL DEFAULT 0,
  output_bytes        integer NOT NULL DEFAULT 0,
  correlation_id      text NOT NULL,
  created_at          timestamptz NOT NULL DEFAULT now(),
  dispatched_at       timestamptz,
  accepted_at         timestamptz,
  finished_at         timestamptz,
  UNIQUE (org_id, id),
  FOREIGN KEY (org_id, agent_id) REFERENCES execution_agents (org_id, id),
  CHECK ((status IN ('succeeded', 'failed', 'cancelled', 'unplaced')) = (finished_at IS NOT NULL)),
  CHECK (status NOT IN ('dispatched', 'running') OR
    agent_id IS NOT NULL AND generation > 0 AND deadline_at IS NOT NULL AND dispatched_at IS NOT NULL),
  CHECK (status NOT IN ('pending', 'unplaced') OR agent_id IS NULL AND session_id IS NULL AND wait_until IS NOT NULL),
  CHECK (status <> 'running' OR accepted_at IS NOT NULL AND session_id IS NOT NULL),
  CHECK ((status = 'running') = (lease_until IS NOT NULL)),
  CHECK ((status IN ('failed', 'cancelled', 'unplaced')) = (error IS NOT NULL)),
  -- Nothing succeeds but by its agent's own result.
  CHECK (CASE WHEN status = 'succeeded' THEN reported
              WHEN status IN ('failed', 'cancelled') THEN true
              ELSE NOT reported END),
  CHECK (output IS NULL OR finished_at IS NOT NULL),
  CHECK (sealed_secret IS NULL OR status IN ('pending', 'dispatched')),
  CHECK (output_erased_at IS NULL OR finished_at IS NOT NULL AND output IS NULL AND payload IS NULL)
) WITH (fillfactor = 80);
-- By columns that stay as they are while an agent works, so that what it reports stays within its page.
CREATE INDEX executions_waiting ON executions (org_id, id) WHERE finished_at IS NULL AND agent_id IS NULL;
CREATE INDEX executions_with_agent ON executions (agent_id, id) WHERE finished_at IS NULL AND agent_id IS NOT NULL;
CREATE INDEX executions_deadline ON executions (deadline_at) WHERE finished_at IS NULL AND agent_id IS NOT NULL;
CREATE INDEX executions_to_erase ON executions (finished_at) WHERE finished_at IS NOT NULL AND output_erased_at IS NULL;
CREATE INDEX executions_newest ON executions (org_id, id DESC);
ALTER TABLE executions ENABLE ROW LEVEL SECURITY;
ALTER TABLE executions FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON executions TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON executions TO holdfast_system USING (true);
GRANT SELECT, UPDATE (status, revision, agent_id, session_id, signature, sealed_secret, wait_until, deadline_at, lease_until,
  accepted_at, progress, error, cancel_requested_at, finished_at) ON executions TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON executions TO holdfast_system;

-- What steps printed while they ran, as far as it was reported. Erased with the output of the request.
CREATE TABLE execution_output (
  execution_id uuid NOT NULL,
  org_id       uuid NOT NULL,
  generation   integer NOT NULL,
  seq          integer NOT NULL,
  stream       text NOT NULL CHECK (stream IN ('stdout', 'stderr')),
  text         text NOT NULL,
  received_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (execution_id, generation, seq),
  FOREIGN KEY (org_id, execution_id) REFERENCES executions (org_id, id) ON DELETE CASCADE
);
ALTER TABLE execution_output ENABLE ROW LEVEL SECURITY;
ALTER TABLE execution_output FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON execution_output TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON execution_output TO holdfast_system USING (true);
GRANT SELECT ON execution_output TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON execution_output TO holdfast_system;

-- Results that came after the request had ended otherwise, or of another delivery: never overwrite, never lost.
CREATE TABLE execution_late_results (
  execution_id uuid NOT NULL,
  org_id       uuid NOT NULL,
  agent_id     uuid NOT NULL,
  status       text NOT NULL CHECK (status IN ('succeeded', 'failed')),
  output       json,
  error        text,
  received_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (execution_id, agent_id),
  FOREIGN KEY (org_id, execution_id) REFERENCES executions (org_id, id) ON DELETE CASCADE
);
ALTER TABLE execution_late_results ENABLE ROW LEVEL SECURITY;
ALTER TABLE execution_late_results FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON execution_late_results TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON execution_late_results TO holdfast_system USING (true);
GRANT SELECT ON execution_late_results TO holdfast_app;
GRANT SELECT, INSERT, UPDATE (output), DELETE ON execution_late_results TO holdfast_system;
