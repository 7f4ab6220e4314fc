// Agents as far as their heartbeats go, over any server: what a single host may do to them (ten kinds of churn, none of which
// is a clone), and what two hosts with one identity do. The same rounds run over the decision alone and over a real api.

import { randomUUID } from "node:crypto";
import type { Contact, Lineage, Machine, Previous } from "../../src/nodes/holders/lineage.ts";
import {
  addContact,
  afterProof,
  noLineage,
  provedHolders,
  shouldConfirm,
} from "../../src/nodes/holders/lineage.ts";

export type Sent = {
  instanceId: string;
  bootId: string;
  after: number | undefined;
  /** Of the host's clock, in milliseconds. */
  clockOff: number;
  serial: string;
  address: string;
};
export type Answered = { number: number | undefined; again: boolean };
export type Server = {
  heartbeat(sent: Sent): Promise<Answered>;
  /** The connection of the last heartbeat has ended, and the server noticed. */
  disconnected(): Promise<void>;
};
export type Random = () => number;

export type Host = { bootId: string; clockOff: number; serial: string; address: string };
export const newHost = (): Host => ({ bootId: randomUUID(), clockOff: 0, serial: "a1", address: "10.0.0.1" });

/** A process of the agent: what it was answered last is all that it remembers. */
export type TestProcess = {
  host: Host;
  /** As it would be sent now; its answer is not read. */
  prepare(): Sent;
  /** Sends one, and another one if the server wants it, as the agent does. */
  beat(server: Server): Promise<void>;
  /** Its memory, on another host or at another time. */
  copy(host?: Host): TestProcess;
};

export function newProcess(host: Host, memory = { instanceId: randomUUID() as string, answered: 0 }): TestProcess {
  let { answered } = memory;
  const { instanceId } = memory;
  const prepare = (): Sent => ({ ...host, instanceId, after: answered });
  const once = async (server: Server) => {
    const { number, again } = await server.heartbeat(prepare());
    answered = number ?? answered;
    return again;
  };
  return {
    host,
    prepare,
    async beat(server) {
      if (await once(server)) await once(server);
    },
    copy: (other = host) => newProcess(other, { instanceId, answered }),
  };
}

type Round = { server: Server; random: Random; replica: Server };
const times = (random: Random, most: number) => 1 + Math.floor(random() * most);
async function beats(server: Server, process: TestProcess, count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await process.beat(server);
}
/** Sent before, and delivered at some time between the heartbeats of another process. */
async function amid(round: Round, late: readonly Sent[], process: TestProcess): Promise<void> {
  const { server, random } = round;
  for (const one of late) {
    await beats(server, process, times(random, 2) - (random() < 0.3 ? 1 : 0));
    await server.heartbeat(one);
  }
  await beats(server, process, times(random, 3));
}

/** What happens to one host whose agent runs; returns the process that runs afterwards. */
export type Churn = (round: Round, process: TestProcess) => Promise<TestProcess>;

export const benign: Readonly<Record<string, Churn>> = {
  restart: async ({ server, random }, process) => {
    if (random() < 0.7) await server.disconnected();
    const next = newProcess(process.host);
    await beats(server, next, times(random, 3));
    return next;
  },
  "crash restart": async (round, process) => {
    const late = [process.prepare(), ...(round.random() < 0.5 ? [process.prepare()] : [])];
    const next = newProcess(process.host);
    await amid(round, late, next);
    return next;
  },
  reboot: async (round, process) => {
    const next = newProcess({ ...process.host, bootId: randomUUID() });
    await amid(round, round.random() < 0.5 ? [process.prepare()] : [], next);
    return next;
  },
  "address change": async (round, process) => {
    const moved = process.copy({ ...process.host, address: `10.0.${times(round.random, 200)}.7` });
    await amid(round, [process.prepare()], moved);
    return moved;
  },
  "snapshot restored after the original is gone": async (round, process) => {
    const snapshot = process.copy();
    const { server, random } = round;
    if (random() < 0.7) await beats(server, process, times(random, 4));
    const late = [process.prepare()];
    if (random() < 0.5) {
      // After an upgrade, say, which did not work.
      const next = newProcess(process.host);
      await beats(server, next, times(random, 3));
      late.push(next.prepare());
    }
    const restored = random() < 0.7 ? snapshot : newProcess(process.host);
    await amid(round, late, restored);
    return restored;
  },
  "clock jump": async ({ server, random }, process) => {
    process.host.clockOff = (random() - 0.5) * 4 * 3_600_000;
    await beats(server, process, times(random, 3));
    process.host.clockOff = 0;
    await beats(server, process, times(random, 2));
    return process;
  },
  renewal: async ({ server, random }, process) => {
    const renewed = process.copy({ ...process.host, serial: `b${times(random, 1e6)}` });
    // The new certificate is tried beside the link.
    const tried = { ...renewed.prepare(), after: undefined };
    await Promise.all([server.heartbeat(tried), renewed.beat(server)]);
    await beats(server, renewed, times(random, 2));
    return renewed;
  },
  "network flap with a half-open link": async (round, process) => {
    const { server, random } = round;
    // Answers are lost; some of what was sent arrives much later.
    const late: Sent[] = [];
    for (let turn = times(random, 4); turn > 0; turn -= 1) {
      if (random() < 0.5) await server.heartbeat(process.prepare());
      else late.push(process.prepare());
    }
    await amid(round, late, process);
    return process;
  },
  "replica switch": async ({ server, replica, random }, process) => {
    const late = process.prepare();
    for (let turn = times(random, 4); turn > 0; turn -= 1) await process.beat(random() < 0.5 ? server : replica);
    await (random() < 0.5 ? server : replica).heartbeat(late);
    await process.beat(replica);
    return process;
  },
  "upgrade with overlap": async ({ server, random }, process) => {
    const next = newProcess(process.host);
    // The old process reads the answer to its last heartbeat when the new one runs already, and then it ends.
    const last = process.prepare();
    await next.beat(server);
    await server.heartbeat(last);
    await beats(server, next, times(random, 3));
    return next;
  },
};

/** Two that run with one identity. Each does what it does in the course of a minute, in any order. */
export type Cloning = (original: TestProcess, round: Round) => Promise<TestProcess>;
const elsewhere = (host: Host): Host => ({ ...host, bootId: randomUUID(), address: "10.9.9.9" });

export const cloned: Readonly<Record<string, Cloning>> = {
  "cold clone": async (original) => newProcess(elsewhere(original.host)),
  "warm clone with the same ids": async (original) => original.copy(),
  "warm clone of an earlier moment": async (original, { server, random }) => {
    const copy = original.copy();
    await beats(server, original, times(random, 5));
    return copy;
  },
  "clone taken before a renewal": async (original, { server, random }) => {
    const copy = newProcess(elsewhere(original.host));
    original.host.serial = `b${times(random, 1e6)}`;
    await beats(server, original, times(random, 3));
    return copy;
  },
};

/** The rule of the presence statement, in memory; `proofs` counts what follows from it. */
export function serverInMemory(now: () => number): Server & { proofs(): number } {
  let last: Previous | undefined;
  let lineage: Lineage = noLineage;
  let proofs = 0;
  const machineOf = (sent: Sent): Machine => {
    const { instanceId, bootId, serial, address } = sent;
    return { instanceId, bootId, serial, address, hostname: "host", startedAt: null };
  };
  return {
    proofs: () => proofs,
    async disconnected() {
      if (last) last = { ...last, disconnected: true };
    },
    async heartbeat(sent) {
      const before = last;
      const at = now();
      const number = (before?.number ?? 0) + (sent.after === undefined ? 0 : 1);
      const after = sent.after ?? (before?.instanceId === sent.instanceId ? before.after : null);
      last = { ...machineOf(sent), number, after, at, disconnected: false };
      if (sent.after === undefined) return { number: undefined, again: false };
      const continues = before?.instanceId === sent.instanceId && before.number === sent.after;
      if (before === undefined || continues) return { number, again: false };
      const contact: Contact = { ...machineOf(sent), number, after: sent.after, at, previous: before };
      lineage = addContact(lineage, contact);
      const proved = provedHolders(lineage);
      if (proved) lineage = afterProof(lineage, proved, at);
      proofs += proved ? 1 : 0;
      return { number, again: shouldConfirm(lineage) };
    },
  };
}
