// The agent that runs steps: one connection, one journal, what is in flight. Everything comes in by options and leaves by the
// handle; nothing is global, so that thousands can run in one process.

import type { SecureContext } from "node:tls";
import type { HelloFrame } from "@holdfast/contracts/execution/frames";
import { DEFAULT_MAX_IN_FLIGHT, EXECUTION_PROTOCOL, executionKinds } from "@holdfast/contracts/execution/limits";
import type { Log } from "../log.ts";
import { type Connection, keepConnected } from "./connection.ts";
import { usualConnectors } from "./connectors.ts";
import type { Credentials } from "./credentials.ts";
import { createDeliveries, type DeliveriesOptions, type ExecutionJournal } from "./deliveries.ts";
import { createExecutions } from "./executions.ts";
import { AnyExecute, GatewayFrame, SignedExecute } from "./frames.generated.ts";
import type { PinnedKeys } from "./key-set.ts";
import { type LinkTimes, type OwnedLink, usualTimes } from "./link.ts";
import { prepareStep } from "./prepare-step.ts";
import type { Sandbox } from "./shell-step.ts";
import { judgeExecution } from "./verify.ts";

export type ExecutionAgentOptions = {
  credentials: Pick<Credentials, "agentId" | "agentToken" | "organizationId" | "gatewayWsUrl" | "name">;
  agentVersion: string;
  tags?: readonly string[];
  /** Of the built-in ones; by default those that connect to nothing. */
  connectors?: readonly string[];
  /** Networks that connectors may reach beside public and private addresses. */
  connectorNetworks?: readonly string[];
  maxInFlight?: number;
  journal: ExecutionJournal;
  /** Undefined: of a journal that is lost with its process. */
  journalId?: string;
  keys: PinnedKeys;
  sandbox: Sandbox;
  /** Values of the agent's environment that steps may get: they are removed from output as secrets of requests are. */
  hostSecrets?: readonly string[];
  secureContext?: SecureContext | undefined;
  log: Log;
  times?: Partial<LinkTimes>;
  resend?: DeliveriesOptions["resend"];
  /** How long `stop` waits for acknowledgements of results, while there is a connection. */
  deliveryMs?: number;
  random?: () => number;
  now?: () => number;
};

export type ExecutionAgent = {
  isConnected(): boolean;
  running(): number;
  /** Takes no new steps, finishes those that run, delivers their results, and closes the journal. */
  stop(): Promise<void>;
  /** Ends all steps at once, without waiting. They are reported as failed by the next start. */
  kill(): void;
};

const DELIVERY_MS = 10_000;

export function startExecutionAgent(options: ExecutionAgentOptions): ExecutionAgent {
  const { credentials, journal, keys, log, now = Date.now, random = Math.random } = options;
  const { agentId, organizationId } = credentials;
  const connectors = options.connectors ?? usualConnectors;
  const served = { enabled: connectors, networks: options.connectorNetworks ?? [] };
  const maxInFlight = options.maxInFlight ?? DEFAULT_MAX_IN_FLIGHT;
  let draining = false;
  let renewals: NodeJS.Timeout | undefined;
  let onIdle = () => {};

  const newest = () => connection.newest();
  const deliveries = createDeliveries({ journal, newest, random, resend: options.resend });
  const executions = createExecutions({
    ...{ journal, deliveries, maxInFlight, log },
    prepare: (frame) => prepareStep(frame, { connectors: served, sandbox: options.sandbox }),
    secretsOf: ({ secret }) => [...(secret === undefined ? [] : [secret]), ...(options.hostSecrets ?? [])],
    onEnded() {
      connection.tidy();
      if (journal.unsentCount() === 0) onIdle();
    },
  });

  const hello = (): HelloFrame => {
    const keySetVersion = keys.version();
    return {
      type: "hello",
      agentVersion: options.agentVersion,
      name: credentials.name,
      capabilities: {
        kinds: [...executionKinds],
        connectors: [...connectors],
        tags: [...(options.tags ?? [])],
        maxInFlight,
      },
      protocolVersion: EXECUTION_PROTOCOL,
      holding: deliveries.holding(),
      ...(options.journalId === undefined ? {} : { journalId: options.journalId }),
      ...(keySetVersion === undefined ? {} : { keySetVersion }),
    };
  };

  const execute = (frame: unknown, link: OwnedLink) => {
    const checked = SignedExecute.safeParse(frame);
    if (checked.success) {
      const judge = { agentId, organizationId, keyring: keys.keyring(), now: now() };
      return executions.offered(checked.data, judgeExecution(checked.data, judge), link);
    }
    const { success, data } = AnyExecute.safeParse(frame) as { success: boolean; data?: AnyExecute };
    if (!success || !data) return log.warn("an execute frame without a valid request id was ignored");
    refuseUnsigned(data, checked.error.message, link);
  };
  /** Not a signed dispatch. Nothing in it is believed but that somebody waits for an answer to it. */
  const refuseUnsigned = ({ requestId, generation }: AnyExecute, why: string, link: OwnedLink) => {
    log.error("an execute frame that is not a signed dispatch was refused", {
      request_id: requestId,
      detail: why,
    });
    // Of a request that is known here, only signed frames are answered.
    if (journal.stateOf(requestId) !== "unknown") return;
    const reason = `it is not a signed dispatch: ${why}`.slice(0, 400);
    if (generation !== undefined) link.send({ type: "declined", requestId, generation, reason });
    // A gateway that signs nothing does not know `declined` either.
    else
      link.send({
        type: "execute_result",
        requestId,
        status: "failed",
        error: `NODE_EXECUTION_FAILED: ${reason}`,
      });
  };

  const onAccepted = (frame: GatewayFrame & { type: "welcome" }, link: OwnedLink) => {
    if (frame.agentId !== agentId || frame.organizationId !== organizationId) {
      const message = `the gateway takes this agent for ${frame.agentId} of the organization ${frame.organizationId}`;
      return link.end({ kind: "other_agent", message });
    }
    keys.offered(frame.keySets);
    connection.accepted(link);
    const holding = deliveries.holding().length;
    log.info("connected", { gateway: credentials.gatewayWsUrl, agent_id: agentId, holding });
    clearInterval(renewals);
    renewals = setInterval(deliveries.renew, frame.leaseMs / 4);
    if (draining) link.send({ type: "drain" });
    executions.flush();
  };

  const onFrame = (text: string, link: OwnedLink) => {
    const frame = parse(text);
    const { type } = (frame ?? {}) as { type?: unknown };
    // A gateway of another system sends no `welcome`.
    if (!link.isReady() && (type === "pong" || type === "execute")) connection.accepted(link);
    if (type === "execute") return execute(frame, link);
    const checked = GatewayFrame.safeParse(frame);
    if (!checked.success)
      return log.debug("a frame of the gateway was ignored", { detail: checked.error.message });
    const { data } = checked;
    switch (data.type) {
      case "welcome":
        return onAccepted(data, link);
      case "result_ack":
        return executions.acknowledged(data);
      case "cancel":
        return executions.cancelled(data);
      case "drain":
        return connection.replace(link);
      case "error":
        return log.warn("the gateway reports an error", { code: data.code, detail: data.message });
      case "pong":
    }
  };

  const connection: Connection = keepConnected({
    url: credentials.gatewayWsUrl,
    token: credentials.agentToken,
    secureContext: options.secureContext,
    times: { ...usualTimes, ...options.times },
    ...{ hello, onFrame, random, log },
    // What was sent by a link that has ended may be lost.
    onEnded: () => connection.newest() && executions.flush(),
    isBusy: deliveries.isBusy,
  });

  return {
    isConnected: () => connection.newest() !== undefined,
    running: executions.running,
    async stop() {
      draining = true;
      for (const link of connection.links()) link.send({ type: "drain" });
      await executions.drain();
      if (journal.unsentCount() > 0 && connection.newest()) await acknowledged();
      clearInterval(renewals);
      connection.close();
      deliveries.stop();
      await journal.close();
    },
    kill: executions.kill,
  };

  /** Until all results are acknowledged. Those that are not stay in the journal. */
  function acknowledged(): Promise<void> {
    return new Promise((resolve) => {
      const waited = setTimeout(resolve, options.deliveryMs ?? DELIVERY_MS);
      onIdle = () => {
        clearTimeout(waited);
        resolve();
      };
    });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
