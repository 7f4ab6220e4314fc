// holdfast down: stops what `holdfast up` runs on this data directory, from any terminal.

import { accessSync, constants, statSync } from "node:fs";
import { stopLeftOver } from "@holdfast/control-plane/database/embedded/left-over";
import { readSettings } from "@holdfast/kit/settings";
import { Command } from "commander";
import { asItsUser, type DataDirectory, pathsIn } from "../up/data-directory.ts";
import { dataDirectorySetting } from "../up/data-directory-setting.ts";
import { endLeftOverChildren } from "../up/left-over-children.ts";
import { takeLock } from "../up/lock.ts";
import { livingSupervisor, readUpFile, removeUpFile, type UpFile } from "../up/up-file.ts";

/** Longer than the supervisor itself waits before it kills. */
const patienceSeconds = 60;

type Outcome = { stopped: boolean; pid: number | null; left_over: string[] };

export function downCommand(): Command {
  return new Command("down")
    .description("stop the processes that `holdfast up` runs on this data directory")
    .option("--json", "print the outcome as JSON")
    .action(async (options: { json?: boolean }) => {
      const { dataDir } = readSettings({ dataDir: dataDirectorySetting }, process.env);
      const outcome = await bringDown(pathsIn(dataDir));
      const text = options.json ? JSON.stringify({ ...outcome, data_dir: dataDir }) : describe(outcome, dataDir);
      process.stdout.write(`${text}\n`);
    });
}

async function bringDown(data: DataDirectory): Promise<Outcome> {
  const installation = asItsUser(data.path, () => lookInto(data));
  if (!installation) return { stopped: false, pid: null, left_over: [] };
  const { file } = installation;
  const supervisor = file && livingSupervisor(file);
  if (supervisor) process.kill(supervisor.pid, "SIGTERM");
  // The supervisor holds the lock until everything below it has ended.
  const lock = await takeLock(data.lock, patienceSeconds);
  if (lock === undefined) {
    throw new Error(
      `Holdfast on ${data.path} (pid ${supervisor?.pid ?? "unknown"}) did not stop. Logs: ${data.logs}`,
    );
  }
  try {
    const leftOver = await stopLeftOvers(data);
    return {
      stopped: supervisor !== undefined || leftOver.length > 0,
      pid: supervisor?.pid ?? null,
      left_over: leftOver,
    };
  } finally {
    lock.release();
  }
}

/** Undefined where there is no installation; throws when it is not ours to stop. */
function lookInto(data: DataDirectory): { file: UpFile | undefined } | undefined {
  if (statSync(data.lock, { throwIfNoEntry: false }) === undefined) return undefined;
  accessSync(data.lock, constants.W_OK);
  return { file: readUpFile(data.upFile) };
}

/** After a kill -9 of the supervisor its processes may still be ending. */
async function stopLeftOvers(data: DataDirectory): Promise<string[]> {
  const stopped: string[] = [];
  const file = readUpFile(data.upFile);
  if (file) stopped.push(...(await endLeftOverChildren(file, () => undefined)));
  await stopLeftOver(`${data.postgres}/data`, () => stopped.push("postgres"));
  removeUpFile(data.upFile);
  return [...new Set(stopped)];
}

function describe(outcome: Outcome, dataDir: string): string {
  if (!outcome.stopped) return `Holdfast is not running on ${dataDir}.`;
  const rest =
    outcome.left_over.length > 0
      ? ` Also stopped, left over from an earlier run: ${outcome.left_over.join(", ")}.`
      : "";
  const who = outcome.pid === null ? "" : ` (pid ${outcome.pid})`;
  return `Holdfast on ${dataDir}${who} stopped.${rest}`;
}
