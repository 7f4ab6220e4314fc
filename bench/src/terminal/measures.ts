// What is measured of a terminal: how long a key takes to appear, how fast output flows, and how long a person
// waits for the prompt.

import { setTimeout as pause } from "node:timers/promises";
import { median } from "../report.ts";
import { type Output, openAtPrompt, outputOf, type Terminal, type TerminalSide } from "./terminal.ts";

export type Echo = { p50: number; p99: number };
export type Bulk = { oneLine: number; lines: number };

/** Between two keys: what came before has settled everywhere. */
const GAP_MS = 4;
/** As a person opens them: the agent has a process ready for the next by then. */
const BETWEEN_OPENINGS_MS = 1_500;
const KEYS_PER_LINE = 40;
const ERASE_LINE = "\x15";

/** Milliseconds from sending a key to its echo, one key at a time. */
export async function measureEcho(terminal: Terminal, keys: number): Promise<Echo> {
  const latencies: number[] = [];
  for (let sent = 0; sent < keys; sent += 1) {
    if (sent % KEYS_PER_LINE === 0 && sent > 0) await erase(terminal);
    const echoed = outputOf(terminal, (output) => (output.includes("a") ? performance.now() : undefined));
    const started = performance.now();
    terminal.write("a");
    latencies.push((await echoed) - started);
    await pause(GAP_MS);
  }
  await erase(terminal);
  latencies.sort((a, b) => a - b);
  return { p50: median(latencies), p99: latencies[Math.floor(latencies.length * 0.99)] ?? 0 };
}

async function erase(terminal: Terminal): Promise<void> {
  const redrawn = outputOf(terminal, () => true);
  terminal.write(ERASE_LINE);
  await redrawn;
  await pause(10 * GAP_MS);
}

/** Megabytes per second, from the command to the last byte. */
export async function measureBulk(terminal: Terminal): Promise<Bulk> {
  return {
    oneLine: await rateOf(terminal, "head -c 50M /dev/zero | tr '\\0' x; echo"),
    lines: await rateOf(terminal, "seq 1 5000000"),
  };
}

/** Split in the command, so that the shell's echo of it is not taken for the end. */
const END = { typed: "E_''N_D", printed: "E_N_D" };

async function rateOf(terminal: Terminal, command: string): Promise<number> {
  let bytes = 0;
  let tail = "";
  const ended = outputOf(terminal, (output) => {
    bytes += output.length;
    tail = tail.slice(-END.printed.length) + tailOf(output);
    return tail.includes(END.printed) ? performance.now() : undefined;
  });
  const started = performance.now();
  terminal.write(`${command}; echo ${END.typed}\n`);
  const seconds = ((await ended) - started) / 1000;
  // The prompt comes behind it.
  await pause(200);
  return bytes / 1e6 / seconds;
}

/** The end is the last thing printed but for a prompt; looking through all of the output would be measured too. */
function tailOf(output: Output): string {
  return typeof output === "string"
    ? output.slice(-256)
    : output.toString("latin1", Math.max(0, output.length - 256));
}

/** Milliseconds from asking for a terminal to its prompt. */
export async function measurePrompt(side: TerminalSide, times: number): Promise<number> {
  const waits: number[] = [];
  for (let opened = 0; opened < times; opened += 1) {
    const started = performance.now();
    const terminal = await openAtPrompt(side);
    waits.push(performance.now() - started);
    await terminal.close();
    await pause(BETWEEN_OPENINGS_MS);
  }
  return median(waits);
}
