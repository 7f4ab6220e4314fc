// One simulated agent: the real agent's link, executor, outbox, renewals and journal rules over a connection of its
// own, with nothing on disk and an invented host. What it does next is decided where a real agent decides it.

import { randomUUID } from "node:crypto";
import type { LookupFunction } from "node:net";
import type { EnvironmentProfile, VerifierKeys } from "@holdfast/contracts/node-protocol";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import { createExecutor, type TaskEvent } from "../executor/executor.ts";
import { type AgentFile, verifierKeyring } from "../identity/agent-file.ts";
import type { Identity } from "../identity/identity-file.ts";
import { requestRenewal } from "../identity/renew.ts";
import { openMemoryJournal } from "../journal/in-memory.ts";
import { createAnswering } from "../link/answering.ts";
import { retryDelay } from "../link/decisions.ts";
import { type Counters, describeAgent, noCounters } from "../link/heartbeat.ts";
import { createLink, type Link, skewSecondsOf } from "../link/loop.ts";
import { createOutbox } from "../link/outbox.ts";
import { createRenewals } from "../link/renewals.ts";
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
  let { identity, roots, agent } = joined;
  let keyring = options.keyringOf(agent.verifiers);
  const counters: Counters = { ...noCounters };
  const client = createSimClient({
    apiUrl: options.apiUrl,
    lookup: options.lookup,
    nodeId: identity.nodeId,
    ...{ instanceId, bootId: options.bootId },
    credentials: { ...identity, roots },
    myTurn: options.myTurn,
  });
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
    onGivenUp: () => undefined,
  });
  const executor = createExecutor({
    nodeId: identity.nodeId,
    journal,
    loadType: types.load,
    verifiers: () => keyring,
    refreshVerifiers: () => link.heartbeatNow(),
    host: () => ({
      stateDir: "/nonexistent",
      profile: agent.profile,
      capabilities: character.facts.capabilities,
      account: character.facts.account,
      terminals: noTerminals,
    }),
    now: Date.now,
    skewSeconds: () => skewSecondsOf(link.status()),
    sendProgress: client.progress,
    resultReady: outbox.poke,
    volatileResult: outbox.add,
    record: () => undefined,
    count: (event) => {
      counters[`tasks_${event}`] += 1;
      options.onTask(event);
    },
    log: quiet,
  });
  const renewals = createRenewals({
    certificate: () => identity.certificate,
    renew: async () => {
      const renewed = await requestRenewal({ identity, roots, ask: client.renew });
      ({ identity, roots } = renewed);
      client.use({ ...identity, roots });
      return identity.certificate;
    },
    serverNow: () => Date.now() + (link.status().skew?.offset ?? 0),
    onRenewed: () => undefined,
    onFailure: () => {
      counters.renewals_failed += 1;
    },
  });

  const learn = (news: { verifiers?: VerifierKeys; profile?: EnvironmentProfile }) => {
    agent = { ...agent, verifiers: news.verifiers ?? agent.verifiers, profile: news.profile ?? agent.profile };
    keyring = options.keyringOf(agent.verifiers);
  };
  const openLink = () =>
    createLink({
      client: () => client,
      heartbeat: () =>
        describeAgent({
          ...{ now: Date.now(), startedAt, facts: character.facts, certificate: identity.certificate },
          renewalDueAt: renewals.dueAt() ?? identity.certificate.notAfter,
          agent,
          running: executor.running(),
          unsentResults: journal.unsentCount(),
          findings: character.findings,
          counters,
        }),
      holding: executor.holding,
      room: executor.room,
      cancel: executor.cancel,
      offer: executor.offer,
      answered: answering.answered,
      learn,
      onFailure: () => {
        counters.polls_failed += 1;
      },
      onConnected: outbox.reconnected,
      onStanding: () => undefined,
      onHeartbeat: () => {
        options.onHeartbeat();
        renewals.consider();
        executor.pump();
        outbox.poke();
      },
    });
  let link: Link = openLink();
  let ran: Promise<void> | undefined = link.run();

  return {
    nodeId: identity.nodeId,
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
