// One simulated agent: the real agent's link, executor, outbox, renewals and journal rules over a connection of its
// own, with nothing on disk and an invented host. What it does next is decided where a real agent decides it.

import { randomUUID } from "node:crypto";
import type { LookupFunction } from "node:net";
import type { VerifierKeys } from "@holdfast/contracts/node-protocol";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import { createExecutor, type TaskEvent } from "../executor/executor.ts";
import { type Offer, takeOffer } from "../identity/accept-trust.ts";
import { type AgentFile, verifierKeyring } from "../identity/agent-file.ts";
import { withoutPresent } from "../identity/candidates.ts";
import type { Identity } from "../identity/identity-file.ts";
import type { Candidates, Way } from "../identity/trials.ts";
import { openMemoryJournal } from "../journal/in-memory.ts";
import { createAnswering } from "../link/answering.ts";
import { retryDelay } from "../link/decisions.ts";
import { type Counters, describeAgent, noCounters } from "../link/heartbeat.ts";
import { createLink, type Link, skewSecondsOf } from "../link/loop.ts";
import { createOutbox } from "../link/outbox.ts";
import { targetOf } from "../link/session.ts";
import { createUpkeep } from "../link/upkeep.ts";
import type { Log } from "../log.ts";
import type { Character } from "./character.ts";
import { createSimClient } from "./client.ts";
import type { Dialling } from "./dialling.ts";
import type { SimTypes } from "./types.ts";

/** What a join gave. */
export type SimIdentity = { identity: Identity; roots: readonly string[]; agent: AgentFile };

export type SimAgent = {
  readonly nodeId: string;
  connected(): boolean;
  /** When it sent the last heartbeat that was answered. */
  lastHeartbeatAt(): number | undefined;
  /** Why not, in a word; undefined while it is, or while it has not tried. */
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
  /** Before every new connection. */
  myTurn: Dialling;
  fails: () => boolean;
  onHeartbeat(): void;
  onTask(event: TaskEvent): void;
  /** The same keys for every agent of the process: made once. */
  keyringOf(verifiers: VerifierKeys): VerifierKeyring;
};

const quiet: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
const noTerminals = { open: () => Promise.reject(new Error("a simulated node has no shells")) };

export function startSimAgent(options: SimAgentOptions): SimAgent {
  const { joined, character } = options;
  const startedAt = Date.now();
  const instanceId = randomUUID();
  const { nodeId } = joined.identity;
  const held = holdInMemory(joined, options.apiUrl);
  let keyring = options.keyringOf(joined.agent.verifiers);
  const counters: Counters = { ...noCounters };
  const clientOver = (way: Way) =>
    createSimClient({
      ...{ nodeId, instanceId, bootId: options.bootId },
      ...{ lookup: options.lookup, myTurn: options.myTurn },
      ...targetOf(way),
    });
  const client = clientOver(held.present());
  const types = options.types({ facts: character.facts, startedAt, fails: options.fails });
  const journal = openMemoryJournal();
  const answering = createAnswering(() => ({ held: executor.holding().length, unsent: journal.unsentCount() }));

  const outbox = createOutbox({
    journal,
    post: client.results,
    onFailure: (failure, failures) => {
      counters.results_failed += 1;
      answering.postponed();
      return retryDelay({ ...failure, failures }, Math.random());
    },
    onSettled: () => {
      executor.pump();
      answering.settled();
    },
    onRefused: () => undefined,
    onGivenUp: () => undefined,
  });
  const executor = createExecutor({
    nodeId,
    journal,
    loadType: types.load,
    verifiers: () => keyring,
    refreshVerifiers: () => link.heartbeatNow(),
    host: () => ({
      stateDir: "/nonexistent",
      profile: held.present().profile,
      capabilities: character.facts.capabilities,
      account: character.facts.account,
      terminals: noTerminals,
    }),
    now: Date.now,
    skewSeconds: () => skewSecondsOf(link.status()),
    sendProgress: client.progress,
    resultReady: outbox.poke,
    volatile: outbox.volatile,
    record: () => undefined,
    count: (event) => {
      counters[`tasks_${event}`] += 1;
      options.onTask(event);
    },
    log: quiet,
  });
  const upkeep = createUpkeep({
    keeper: {
      ...held,
      adopt: (change) => {
        held.adopt(change);
        client.use(targetOf(held.present()));
      },
    },
    addresses: () => ({ joinedAt: joined.agent.api_url, fixedUrl: undefined }),
    connected: () => link.status().connected,
    skewSeconds: () => skewSecondsOf(link.status()),
    request: async (way) => {
      const trial = clientOver(way);
      try {
        await trial.heartbeat({ ...heartbeatOver(way), holding: executor.holding() });
      } finally {
        trial.hangUp();
      }
    },
    renew: client.renew,
    onAdopted: () => {
      if (!link.status().connected) link.retryNow();
    },
    onFailure: () => undefined,
    onTrustRefused: () => undefined,
    onRenewalFailure: () => {
      counters.renewals_failed += 1;
    },
  });

  const heartbeatOver = ({ identity: { certificate }, profile }: Way) =>
    describeAgent({
      ...{ now: Date.now(), startedAt, facts: character.facts, certificate },
      renewalDueAt: upkeep.renewalDueAt() ?? certificate.notAfter,
      agent: { ...held.agent(), profile },
      running: executor.running(),
      unsentResults: journal.unsentCount(),
      findings: [...character.findings, ...upkeep.findings()],
      counters,
    });
  const openLink = () =>
    createLink({
      client: () => client,
      heartbeat: () => heartbeatOver(held.present()),
      holding: executor.holding,
      room: executor.room,
      cancel: executor.cancel,
      offer: executor.offer,
      answered: answering.answered,
      learn: (offer) => {
        held.learn(offer);
        keyring = options.keyringOf(held.agent().verifiers);
      },
      onFailure: ({ reason }) => {
        counters.polls_failed += 1;
        if (reason !== "edge_rate_limited") upkeep.afterFailure();
      },
      onConnected: outbox.reconnected,
      onStanding: () => undefined,
      onHeartbeat: () => {
        options.onHeartbeat();
        upkeep.afterHeartbeat();
        executor.pump();
        outbox.poke();
      },
    });
  let link: Link = openLink();
  let ran: Promise<void> | undefined = link.run();

  return {
    nodeId,
    connected: () => link.status().connected,
    lastHeartbeatAt: () => link.status().lastHeartbeatAt,
    problem: () => link.status().problem?.reason,
    away: () => ran === undefined,
    goAway() {
      link.stop();
      client.hangUp();
      ran = undefined;
    },
    comeBack() {
      if (ran) return;
      link = openLink();
      ran = link.run();
    },
    async stop() {
      link.stop();
      outbox.stop();
      client.hangUp();
      await Promise.all([ran, executor.stop(0)]);
      await journal.close();
    },
  };
}

/** What is in force and on offer, as session.ts keeps it for an agent with files. */
function holdInMemory({ identity, roots, agent: joined }: SimIdentity, apiUrl: URL) {
  let agent = joined;
  let way: Way = { identity, roots, profile: agent.profile, apiUrl: apiUrl.origin };
  let candidates: Candidates = {};
  const keep = (next: Candidates) => {
    candidates = withoutPresent(next, way);
  };
  return {
    agent: () => agent,
    present: () => way,
    candidates: () => candidates,
    offer: (more: Candidates) => keep({ ...candidates, ...more }),
    adopt(change: Partial<Way>) {
      way = { ...way, ...change };
      keep(candidates);
    },
    learn(offer: Offer) {
      const taken = takeOffer({ agent, way, candidates }, offer);
      agent = taken.agent;
      keep(taken.candidates);
    },
  };
}

/** One for each set of keys, however many agents have it. */
export function sharedKeyrings(): (verifiers: VerifierKeys) => VerifierKeyring {
  const rings = new Map<string, VerifierKeyring>();
  return (verifiers) => {
    const name = verifiers.keys.map(({ kid, x }) => `${kid} ${x}`).join();
    const ring = rings.get(name) ?? verifierKeyring(verifiers);
    rings.set(name, ring);
    return ring;
  };
}
