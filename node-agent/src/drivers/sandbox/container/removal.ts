// The end of containers: of one, and of all that an agent left which was killed.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { isErrno } from "@holdfast/kit/files";
import { isRunId, runIdOf, runTag } from "../driver.ts";
import { isAlive, killTree } from "../process-tree.ts";
import { removeWorkDirectory } from "../work-directory.ts";
import { OWNER_LABEL, RUN_LABEL } from "./arguments.ts";
import { type Cli, EngineProblem, explain } from "./cli.ts";
import type { Engine } from "./engine.ts";

type Place = { engine: Engine; cli: Cli; owner: string; root: string };

/** Of the engine's client, by which a later agent finds it. */
export const RUN_VARIABLE = "HOLDFAST_EXECUTION_RUN";
/** For a container that was killed before it was there. */
export const START_PATIENCE_MS = 20_000;
const CLIENT_PAUSE_MS = 100;
const REMOVAL_ROUNDS = 40;
const REMOVAL_PAUSE_MS = 500;

/** Resolves once the engine has no such container. Throws with what to do by hand. */
export async function removeContainer({ engine, cli, owner }: Place, id: string): Promise<void> {
  const name = runTag(owner, id);
  let said = "";
  for (let round = 0; round < REMOVAL_ROUNDS; round += 1) {
    if (round > 0) await wait(REMOVAL_PAUSE_MS);
    await cli.ask([...engine.remove, name]);
    const { code, stdout, stderr, missing } = await cli.ask([
      "ps",
      "-a",
      "-q",
      "--filter",
      `label=${RUN_LABEL}=${id}`,
    ]);
    if (missing || (code === 0 && stdout.trim() === "")) return;
    said = stderr;
  }
  throw new Error(`the container ${name} could not be removed. Run: ${engine.name} rm -f ${name}. ${said}`.trim());
}

/** Of an agent that was killed, at any point. Returns how many runs it left. */
export async function recover(context: Place): Promise<number> {
  const { owner, root } = context;
  const directories = namesIn(root).filter(isRunId);
  const containers = new Set<string>();
  const removeAll = async () => {
    for (const id of await containersOf(context)) {
      await removeContainer(context, id);
      containers.add(id);
    }
  };
  // First what would still create a container. Its client ends by itself then, for want of a script; if it was killed while the
  // engine creates the container, that would be there when nobody looks for it any more.
  const clients = directories.map((id) => ({ mark: `${RUN_VARIABLE}=${id}` }));
  const giveUpAt = Date.now() + START_PATIENCE_MS;
  while (clients.some(isAlive) && Date.now() < giveUpAt) {
    await removeAll();
    await wait(CLIENT_PAUSE_MS);
  }
  for (const client of clients) await killTree(client);
  await removeAll();
  // podman's monitor of a container that its client did not live to complete: the engine itself does not know of it.
  for (const id of directories) await killTree({ mark: `${RUN_VARIABLE}=${id}`, argument: runTag(owner, id) });
  for (const id of directories) await removeWorkDirectory(join(root, id));
  return new Set([...directories, ...containers]).size;
}

async function containersOf({ cli, engine, owner }: Place): Promise<string[]> {
  const list = ["ps", "-a", "--filter", `label=${OWNER_LABEL}=${owner}`, "--format", "{{.Names}}"];
  const { code, stdout, stderr, missing } = await cli.ask(list);
  if (code !== 0 && !missing) throw new EngineProblem(explain(engine, stderr, ""));
  return stdout.split("\n").flatMap((name) => runIdOf(owner, name.trim()) ?? []);
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return [];
    throw error;
  }
}
