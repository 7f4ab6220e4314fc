// One simulated agent: the agent's core over connections of its own, with nothing on disk and an invented host. What it
// does next is decided where a real agent decides it.

import { randomUUID } from "node:crypto";
import type { LookupFunction } from "node:net";
import type { VerifierKeys } from "@holdfast/contracts/node/protocol";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import { simulatedVmReport, simulatedVms } from "@holdfast/tasks/vms/simulated";
import { createAgentCore } from "../core/agent-core.ts";
import type { TaskEvent } from "../executor/executor.ts";
import type { Way } from "../identity/trials.ts";
import { openMemoryJournal } from "../journal/in-memory.ts";
import type { LinkKind } from "../link/client.ts";
import { type Ask, exchange } from "../link/exchange.ts";
import { targetOf } from "../link/session.ts";
import type { Log } from "../log.ts";
import { recoveryUrls } from "../recovery/path.ts";
import { memoryStore } from "../recovery/state.ts";
import { type Character, SIMULATED } from "./character.ts";
import { createSimClient } from "./client.ts";
import type { Dialling } from "./dialling.ts";
import { createMemoryIdentity, type SimIdentity } from "./memory-identity.ts";
import type { SimTypes } from "./types.ts";

export type SimAgent = {
  readonly nodeId: string;
  connected(): boolean;
  /** When it sent the last successful heartbeat. */
  lastHeartbeatAt(): number | undefined;
  /** The reason why it is not connected; undefined while it is, or before the first attempt. */
  problem(): string | undefined;
  away(): boolean;
  /** As if the network were cut. */
  goAway(): void;
  comeBack(): void;
  stop(): Promise<void>;
};

export type SimAgentOptions = {
  joined: SimIdentity;
  character: Character;
  types: SimTypes;
  apiUrl: URL;
  lookup: LookupFunction;
  bootId: string;
  /** For every new connection. */
  myTurn: Dialling;
  link: LinkKind;
  fails: () => boolean;
  onHeartbeat(): void;
  onTask(event: TaskEvent): void;
  /** The same keys for every agent of the process, created once. */
  keyringOf(verifiers: VerifierKeys): VerifierKeyring;
};

const quiet: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
const noTerminals = {
  open: () => Promise.reject(new Error("a simulated node has no shells")),
  recover: async () => undefined,
};

/** Thousands wait for their turn here, for longer than the server accepts as a difference of clocks. No host does. */
function sentNow(ask: Ask): Ask {
  const body = ask.body as { sent_at?: string } | undefined;
  return body?.sent_at === undefined ? ask : { ...ask, body: { ...body, sent_at: new Date().toISOString() } };
}

export function startSimAgent(options: SimAgentOptions): SimAgent {
  const { joined, character } = options;
  const instanceId = randomUUID();
  const { nodeId } = joined.identity;
  const clientOver = (way: Way, link: LinkKind) =>
    createSimClient({
      ...{ nodeId, instanceId, bootId: options.bootId, link },
      ...{ lookup: options.lookup, myTurn: options.myTurn },
      ...targetOf(way),
    });
  const identity = createMemoryIdentity(joined, {
    apiUrl: options.apiUrl,
    keyringOf: options.keyringOf,
    onAdopted: (way) => client.use(targetOf(way)),
  });
  const client = clientOver(identity.present(), options.link);
  const node = { facts: character.facts, startedAt: Date.now(), fails: options.fails };
  const types = options.types(node);

  const setup = {
    ...{ install_root: null, unit_sha256: null, env_sha256: null, provider: SIMULATED, network_side: null },
    ...{ source_address: character.facts.advertised_address, root_disk: null },
  };
  const core = createAgentCore({
    identity,
    client: () => client,
    clientOver: (way) => {
      const trial = clientOver(way, "poll");
      return { heartbeat: trial.heartbeat, close: trial.hangUp };
    },
    addresses: () => ({ joinedAt: joined.agent.api_url, fixedUrl: undefined }),
    recovery: {
      ...{ store: memoryStore(nodeId), instanceId, bootId: options.bootId },
      path: () => ({
        urls: recoveryUrls(identity.agent(), identity.present().apiUrl, undefined),
        ...{ roots: joined.roots, lookup: options.lookup },
      }),
      send: (ask) => options.myTurn(() => exchange(sentNow(ask))),
    },
    openJournal: () => openMemoryJournal(),
    loadType: types.load,
    host: () => ({
      stateDir: "/nonexistent",
      profile: identity.present().profile,
      capabilities: character.facts.capabilities,
      account: character.facts.account,
      terminals: noTerminals,
    }),
    facts: () => character.facts,
    setup: () => setup,
    checkHost: () => character.findings,
    vmHost: () => simulatedVmReport(node),
    log: quiet,
    events: { record: () => undefined, onTask: options.onTask, onHeartbeat: options.onHeartbeat },
  });
  simulatedVms(node).onChange(() => core.reportNow());
  core.openTasks();
  let ran: Promise<void> | undefined = core.run();

  return {
    nodeId,
    connected: () => core.status().connected,
    lastHeartbeatAt: () => core.status().lastHeartbeatAt,
    problem: () => core.status().problem?.reason,
    away: () => ran === undefined,
    goAway() {
      core.stopLink();
      client.hangUp();
      ran = undefined;
    },
    comeBack() {
      ran ??= core.run();
    },
    async stop() {
      const tasks = core.tasks();
      core.stopLink();
      tasks?.outbox.stop();
      client.hangUp();
      await Promise.all([ran, tasks?.executor.stop(0)]);
      await tasks?.journal.close();
    },
  };
}
