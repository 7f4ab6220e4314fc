// Types numbered lines into a file on the node, through the whole path, while agent and gateway are stopped, killed and
// cut off without a word. Each line has to arrive once and in order.

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readFileIfPresent } from "@holdfast/kit/files";
import { identify, type ProcessIdentity, signalIfAlive } from "@holdfast/kit/processes";
import { freePorts } from "../../../testkit/processes/free-ports.ts";
import { answers, until } from "../../../testkit/processes/holdfast.ts";
import { openShells, type Shells } from "../support/shells.ts";
import { type HalfOpenRelay, startHalfOpenRelay } from "./half-open.ts";
import { randomFrom } from "./random.ts";

const LINES = 300;
const LINE_EVERY_MS = 8;
const FAULTS_PER_ROUND = 2;
/** Half of the stops are noticed by the others, half are not. */
const STOP_MS = { short: 1_500, long: 14_000 };
const faults = [
  "stop agent",
  "stop gateway",
  "kill agent",
  "kill gateway",
  "cut node link",
  "cut client link",
] as const;
type Fault = (typeof faults)[number];

const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));

export type TypingPlace = {
  shells: Shells;
  /** Of a client elsewhere: one on this machine would go around the relay. */
  env: Record<string, string>;
  gatewayPort: number;
  links: { node: HalfOpenRelay; client: HalfOpenRelay };
  close(): Promise<void>;
};

export async function openTypingPlace(): Promise<TypingPlace> {
  const [gatewayPort, nodePort] = await freePorts<[number, number]>(2);
  const links = { node: await startHalfOpenRelay(nodePort), client: await startHalfOpenRelay(gatewayPort) };
  const shells = await openShells({
    HOLDFAST_GATEWAY_PORT: String(gatewayPort),
    HOLDFAST_NODE_TERMINAL_PORT: String(nodePort),
    HOLDFAST_GATEWAY_PUBLIC_URL: `http://127.0.0.1:${links.client.port}`,
    HOLDFAST_NODE_TERMINAL_URL: `https://127.0.0.1:${links.node.port}`,
  });
  const { data_dir, api_url } = await shells.up.ready;
  const { PATH = "", HOME = "" } = shells.env;
  const token = readFileSync(`${data_dir}/operator-token`, "utf8").trim();
  return {
    shells,
    env: { PATH, HOME, HOLDFAST_API_URL: api_url, HOLDFAST_TOKEN: token },
    gatewayPort,
    links,
    async close() {
      await shells.cleanUp();
      await Promise.all([links.node.stop(), links.client.stop()]);
    },
  };
}

export type Typist = {
  process: ChildProcess;
  /** On the node. */
  file: string;
  /** What it typed first. */
  first: string;
  type(text: string): void;
  /** To the end of its input. */
  finish(): Promise<{ code: number | null; stderr: string }>;
  ended: Promise<{ code: number | null; stderr: string }>;
};

/** `holdfast terminal`, fed by a pipe, at a shell whose `cat` writes to a file. */
export async function startTypist({ shells, env }: TypingPlace, name: string): Promise<Typist> {
  const child = spawn(process.execPath, [command, "terminal", shells.allocation.id], {
    ...{ env, cwd: "/", stdio: ["pipe", "pipe", "pipe"] },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => undefined);
  const ended = new Promise<{ code: number | null; stderr: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, stderr })),
  );
  const first = `stty -echo; echo beg''un; cat > ${name}\n`;
  child.stdin.write(first);
  await until(() => stdout.includes("begun") || child.exitCode !== null);
  if (child.exitCode !== null) throw new Error(`the terminal ended with ${child.exitCode}: ${stdout}${stderr}`);
  return {
    process: child,
    file: `${shells.allocation.home}/${name}`,
    first,
    type: (text) => void child.stdin.write(text),
    finish() {
      child.stdin.end();
      return ended;
    },
    ended,
  };
}

export type TypingReport = {
  seed: number;
  rounds: number;
  faults: Record<Fault, number>;
  /** What was not as it was typed, by round. */
  wrong: string[];
  seconds: number;
};

export async function tortureTyping(
  place: TypingPlace,
  options: { rounds: number; seed: number; onRound?(text: string): void },
): Promise<TypingReport> {
  const random = randomFrom(options.seed);
  const nextFault = shuffledFaults(random);
  const counts = Object.fromEntries(faults.map((fault) => [fault, 0])) as Record<Fault, number>;
  const wrong: string[] = [];
  const started = performance.now();
  for (let round = 1; round <= options.rounds; round += 1) {
    const since = performance.now();
    const plan = Array.from({ length: FAULTS_PER_ROUND }, () => ({
      fault: nextFault(),
      atLine: Math.floor(random() * LINES),
      stopMs: random() < 0.5 ? random() * STOP_MS.short : STOP_MS.long,
    })).toSorted((a, b) => a.atLine - b.atLine);
    for (const { fault } of plan) counts[fault] += 1;
    const found = await typeThrough(place, `typed-${round}`, plan);
    if (found) wrong.push(`round ${round}: ${found}`);
    const described = plan.map(({ fault, atLine }) => `${fault} at line ${atLine}`).join(", ");
    const seconds = ((performance.now() - since) / 1000).toFixed(1);
    options.onRound?.(`round ${round}: ${described}: ${found ?? "each line once"}, ${seconds} s`);
  }
  const seconds = Math.round((performance.now() - started) / 1000);
  return { seed: options.seed, rounds: options.rounds, faults: counts, wrong, seconds };
}

/** Each as often as the others. */
function shuffledFaults(random: () => number): () => Fault {
  const left: Fault[] = [];
  return () => {
    if (left.length === 0) left.push(...faults);
    const [taken = faults[0]] = left.splice(Math.floor(random() * left.length), 1);
    return taken;
  };
}

type Planned = { fault: Fault; atLine: number; stopMs: number };

/** Returns what is wrong with what arrived. */
async function typeThrough(place: TypingPlace, name: string, plan: Planned[]): Promise<string | undefined> {
  const typist = await startTypist(place, name);
  const lines = Array.from({ length: LINES }, (_, line) => `line ${String(line).padStart(3, "0")}\n`);
  const left = [...plan];
  const struck: Promise<void>[] = [];
  for (const [number, line] of lines.entries()) {
    typist.type(line);
    while (left[0] && left[0].atLine <= number) {
      const [next] = left.splice(0, 1);
      if (next) struck.push(strike(place, next));
    }
    await pause(LINE_EVERY_MS);
  }
  const { code, stderr } = await typist.finish();
  await Promise.all(struck);
  // What was killed last may not be back yet, and the next round begins with a new shell.
  await until(() => answers(`http://127.0.0.1:${place.gatewayPort}/readyz`));
  const arrived = readFileIfPresent(typist.file) ?? "";
  if (code === 0 && arrived === lines.join("")) return undefined;
  const present = arrived.split("\n").filter(Boolean);
  const missing = lines.filter((line) => !arrived.includes(line)).length;
  return `exit code ${code}, ${present.length} lines, ${missing} missing, ${present.length - new Set(present).size} twice: ${stderr.trim()}`;
}

async function strike({ shells, links }: TypingPlace, { fault, stopMs }: Planned): Promise<void> {
  switch (fault) {
    case "stop agent":
      return stopFor(shells, "agent", stopMs);
    case "stop gateway":
      return stopFor(shells, "gateway", stopMs);
    case "kill agent":
      return signalIfAlive(await running(shells, "agent"), "SIGKILL");
    case "kill gateway":
      return signalIfAlive(await running(shells, "gateway"), "SIGKILL");
    case "cut node link":
      return until(() => links.node.silence() > 0);
    case "cut client link":
      return until(() => links.client.silence() > 0);
  }
}

async function stopFor(shells: Shells, name: string, ms: number): Promise<void> {
  const victim = await running(shells, name);
  signalIfAlive(victim, "SIGSTOP");
  await pause(ms);
  signalIfAlive(victim, "SIGCONT");
}

/** The supervisor may just be starting it again. */
async function running({ installation }: Shells, name: string): Promise<ProcessIdentity> {
  for (;;) {
    const found = identify(installation.upFile().children[name]?.pid ?? 0);
    if (found) return found;
    await pause(10);
  }
}
