// Hours that pass in a moment, for everybody in a lab. A clock never goes back here, whichever recoveries came before.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import type { Control } from "../lab/control.ts";
import type { Lab } from "../lab/lab.ts";
import { API_PORT } from "../lab/network.ts";
import { type Line, type RunningProgram, start } from "../lab/program.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";

const passed = new WeakMap<object, number>();

export function minutesPass({ clock }: Lab, minutes: number): void {
  if (!clock) throw new Error("this lab has no clock of its own");
  const total = (passed.get(clock) ?? 0) + minutes;
  passed.set(clock, total);
  clock.set(`+${total}m`);
}

/**
 * So many seconds pass, one after the other, also by the steady clocks of the node's agent and of the api, which need
 * `followsLapses`: whoever waits there for seconds has waited for them.
 */
export const lapse = (lab: Lab, seconds: number) => runLapse(lab, seconds);

/** At most the minute that an agent waits before it tries again, and a tenth of it. */
export const lapseUntilConnected = (lab: Lab) => runLapse(lab, 66, "until-connected");

/** For `agentEnv` and `apiEnv`. */
export const followsLapses = () => ({ FAKETIME_DONT_FAKE_MONOTONIC: "0" });

async function runLapse(
  { clock, node, control, directory }: Lab,
  seconds: number,
  ...more: string[]
): Promise<void> {
  if (!clock) throw new Error("this lab has no clock of its own");
  const file = clock.env["FAKETIME_TIMESTAMP_FILE"] ?? "";
  const from = Math.round((passed.get(clock) ?? 0) * 60);
  const args = [file, from, seconds, AGENT_PORT, API_PORT, ...more].map(String);
  const program = start({
    ...{ host: node.host, name: "lapse", logFile: join(directory, "lapse.log") },
    command: [process.execPath, lapseProgram, ...args],
  });
  try {
    let turn = await turnOfApi(control);
    for (let at = 0; ; ) {
      const next = await nextLine(program, at);
      if (typeof next["ended"] === "number") return void passed.set(clock, (from + next["ended"]) / 60);
      at = Number(next["passed"]);
      turn = await turnOfApi(control, turn);
      program.send({ passed: at });
    }
  } finally {
    await program.stop("SIGKILL");
  }
}

/** When the api last said that it runs, by its own clock; later than `after`. */
function turnOfApi({ operator }: Control, after?: string): Promise<string> {
  const ask = async () => {
    const { jobs } = await operator(getPlatformStatus, {});
    const at = jobs.find(({ name }) => name === "report-api-presence")?.last_started_at ?? undefined;
    return at !== undefined && at !== after && at;
  };
  return until("the api says that it runs", PATIENCE_SECONDS, ask, () => "", PAUSE_MS);
}
/** There are some hundred of them in a lapse. */
const PAUSE_MS = 5;

async function nextLine(program: RunningProgram, after: number): Promise<Line> {
  const isNext = (line: Line) => "ended" in line || Number(line["passed"]) > after;
  const line = await Promise.race([program.line(isNext, 0), program.ended]);
  if (!line) throw new Error("the lapse of time ended too early: see lapse.log");
  return line;
}

const AGENT_PORT = 9000;
const lapseProgram = fileURLToPath(new URL("./lapse-process.ts", import.meta.url));

export const hoursPass = (lab: Lab, hours: number) => minutesPass(lab, hours * 60);

/** An hour passes while the node is connected: its certificate gets older, and its token is replaced. */
export async function anHourPasses(lab: Lab): Promise<void> {
  const tokenSeq = async () =>
    (await lab.control.operator(getNode, { params: { node_id: lab.node.id } })).recovery_token?.seq ?? 0;
  const has = (after: number) =>
    until("the node has another recovery token", PATIENCE_SECONDS, async () => {
      const seq = await tokenSeq();
      return seq > after && seq;
    });
  const before = await has(0);
  hoursPass(lab, 1);
  await has(before);
}
