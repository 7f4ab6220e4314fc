// Scripts in containers, by the command-line program of an engine. One `run` with `--rm` is all that a script costs; what else
// the agent wants to know, the program in the container reports (program.ts).

import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { type EnforcedLimit, enforcedLimits } from "@holdfast/contracts/execution/limits";
import { isErrno } from "@holdfast/kit/files";
import type { Environment } from "@holdfast/kit/settings";
import {
  isHeldBack,
  runTag,
  type SandboxCheck,
  type SandboxDriver,
  type SandboxEnd,
  type SandboxOptions,
  type SandboxOrder,
} from "../driver.ts";
import { type EmptyDisks, emptyDisks } from "../empty-disks.ts";
import { userOfRun } from "../user-of-run.ts";
import { checkDisk, makeWorkDirectory, removeWorkDirectory, type WorkDirectory } from "../work-directory.ts";
import { runArguments } from "./arguments.ts";
import { type Cli, EngineProblem, explain, openCli } from "./cli.ts";
import type { Engine, EngineFacts } from "./engine.ts";
import { inputOf, MARKER, readOutput, unusableName } from "./program.ts";
import { RUN_VARIABLE, recover, removeContainer, START_PATIENCE_MS } from "./removal.ts";
import { narrowProfile } from "./seccomp.ts";
import { verifyReady } from "./verify.ts";

export type ContainerOptions = SandboxOptions & {
  /** The program with its options, where it is not the one of that name on the PATH. */
  command?: readonly [string, ...string[]] | undefined;
  /** Of the agent, for the variables that lead to an engine. */
  environment: Environment;
  /** That steps run in unless they name another; `check` reports if it is missing. */
  image?: string | undefined;
  /** For tests: called at each point of a run, in this order. */
  reached?: ((point: ContainerPoint) => void) | undefined;
};

/** What exists by then: /work, the engine's client, the container, the script in it; then only the directory; then nothing. */
export const containerPoints = ["prepared", "started", "ready", "sent", "ended", "removed"] as const;
type ContainerPoint = (typeof containerPoints)[number];

const LOOK_AT_DISK_MS = 500;

type Context = ContainerOptions & {
  engine: Engine;
  cli: Cli;
  volumes: Map<string, readonly string[]>;
  disks: EmptyDisks;
};
/** `filter`: of system calls, where the engine's own is not enough. */
type Facts = EngineFacts & { filter?: string | undefined };
type State = { killed: boolean; over: boolean; onKill?: () => void };

export function containerDriver(engine: Engine, options: ContainerOptions): SandboxDriver {
  const cli = openCli(options.command ?? [engine.name], options.environment);
  const context: Context = { ...options, engine, cli, volumes: new Map(), disks: emptyDisks() };
  let known: Promise<Facts> | undefined;
  let recovered = true;
  /** Once: it takes as long as half a container. An engine that did not work is asked again. */
  const facts = () => {
    const read = async () => {
      const found = await readFacts(context);
      // Before the first run: whatever is there was left by an earlier agent.
      if (!recovered) await recover(context);
      recovered = true;
      return found;
    };
    known ??= read().catch((error) => {
      known = undefined;
      throw error;
    });
    return known;
  };
  return {
    name: engine.name,
    provides: { isolation: true, images: true },
    async check() {
      known = undefined;
      return checkEngine(context, facts);
    },
    run(order) {
      const state: State = { killed: false, over: false };
      return {
        ended: runContainer(context, order, state, facts),
        kill() {
          if (state.over || state.killed) return;
          state.killed = true;
          state.onKill?.();
        },
      };
    },
    /** Of an engine that does not respond, what is left is removed once it does. */
    recover: () =>
      recover(context).catch((error) => {
        if (!(error instanceof EngineProblem)) throw error;
        recovered = false;
        return 0;
      }),
  };
}

async function readFacts({ engine, cli, image = "" }: Context): Promise<Facts> {
  const { code, stdout, stderr, missing } = await cli.ask(engine.info);
  if (missing || code !== 0) throw new EngineProblem(explain(engine, missing ? "ENOENT" : stderr, image));
  const facts = engine.facts(JSON.parse(stdout));
  if (facts.problem) throw new EngineProblem(explain(engine, facts.problem, image));
  if (facts.seccompProfile === undefined) return facts;
  try {
    return { ...facts, filter: narrowProfile(readFileSync(facts.seccompProfile, "utf8")) };
  } catch {
    throw new EngineProblem({
      what: `${engine.name}'s filter of system calls, ${facts.seccompProfile}, cannot be read`,
      remedy: "install the package golang-github-containers-common (containers-common on other systems)",
    });
  }
}

async function checkEngine(context: Context, facts: () => Promise<Facts>): Promise<SandboxCheck> {
  const { engine, image } = context;
  const disk = checkDisk();
  try {
    const { limits } = await facts();
    context.volumes.clear();
    if (image !== undefined) await volumesOf(context, image);
    return { backend: engine.name, limits: { ...limits, disk } };
  } catch (error) {
    if (!(error instanceof EngineProblem)) throw error;
    const { problem } = error;
    const unknown = { enforced: false as const, ...problem };
    return { backend: engine.name, problem, limits: { memory: unknown, pids: unknown, cpu: unknown, disk } };
  }
}

/** That an image declares: they would be writable, and on the host's disk. */
async function volumesOf({ engine, cli, volumes }: Context, image: string): Promise<readonly string[]> {
  const known = volumes.get(image);
  if (known) return known;
  const { code, stdout, stderr } = await cli.ask([
    "image",
    "inspect",
    "--format",
    "{{json .Config.Volumes}}",
    image,
  ]);
  if (code !== 0) throw new EngineProblem(explain(engine, stderr, image));
  const found = engine.name === "docker" ? Object.keys((JSON.parse(stdout) as object | null) ?? {}) : [];
  volumes.set(image, found);
  return found;
}

async function runContainer(
  context: Context,
  order: SandboxOrder,
  state: State,
  facts: () => Promise<Facts>,
): Promise<SandboxEnd> {
  const name = unusableName(order.env);
  if (name !== undefined) throw new Error(`${JSON.stringify(name)} is not a name that a shell can set`);
  const known = await facts();
  const volumes = await volumesOf(context, order.image);
  mkdirSync(context.root, { recursive: true, mode: 0o700 });
  // Without symbolic links: the engine resolves the path for itself, and later.
  const directory = join(realpathSync(context.root), order.id);
  const agent = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const user = { ...agent, ...userOfRun(order.id) };
  try {
    const size = checkDisk().enforced ? { bytes: order.limits.diskBytes, disks: context.disks } : undefined;
    const work = await makeWorkDirectory({ directory, user }, size);
    writeFileSync(join(work.path, MARKER), `${order.id}\n`, { mode: 0o644 });
    const seccomp = known.filter === undefined ? undefined : join(directory, "seccomp.json");
    if (seccomp !== undefined) writeFileSync(seccomp, known.filter ?? "", { mode: 0o600 });
    context.reached?.("prepared");
    if (state.killed) return { exitCode: null, hit: [] };
    const { owner } = context;
    const place = { name: runTag(owner, order.id), owner, work: work.path, user, seccomp, volumes };
    const args = runArguments(context.engine, known, order, place);
    const client = context.cli.start(args, { mark: { [RUN_VARIABLE]: order.id }, cwd: directory });
    context.reached?.("started");
    return await new Attempt({ context, order, state, facts: known, work, client }).end();
  } finally {
    state.over = true;
    await removeWorkDirectory(directory);
    context.reached?.("removed");
  }
}

type AttemptOptions = {
  context: Context;
  order: SandboxOrder;
  state: State;
  facts: EngineFacts;
  work: WorkDirectory;
  client: ChildProcessWithoutNullStreams;
};

/** One container: what it prints, until nothing is left of it. */
class Attempt {
  readonly #options: AttemptOptions;
  readonly #mark = randomBytes(16).toString("hex");
  readonly #reader = readOutput(this.#mark);
  /** By the engine itself: until the script was sent, nobody else prints anything. */
  #said = "";
  #sent = false;
  #refusal: string | undefined;
  #full = false;
  #looking: NodeJS.Timeout | undefined;
  /** Set once the script has ended: /work is taken from the host while the engine removes the container. */
  #detached: Promise<void> | undefined;

  constructor(options: AttemptOptions) {
    this.#options = options;
  }

  async end(): Promise<SandboxEnd> {
    const { client, state, context, order } = this.#options;
    const closed = this.#follow();
    state.onKill = () => this.#stop();
    if (state.killed) this.#stop();
    this.#looking = setInterval(() => void this.#lookAtDisk(), LOOK_AT_DISK_MS);
    const code = await closed;
    context.reached?.("ended");
    await this.#detach();
    const counted = this.#reader.counted();
    // The client of a run that ended by itself returns once the container is removed.
    if (counted === undefined || counted.get("code") !== String(code)) await removeContainer(context, order.id);
    client.stdin.destroy();
    if (this.#refusal !== undefined) throw new Error(this.#refusal);
    if (state.killed) return { exitCode: null, hit: this.#hit(counted) };
    if (!this.#sent) throw new EngineProblem(explain(context.engine, this.#said, order.image));
    if (code === null || (counted === undefined && code === 125)) {
      throw new Error(
        `${context.engine.name} lost the container of the script: ${this.#said.trim() || "no reason given"}`,
      );
    }
    return { exitCode: code, hit: this.#hit(counted) };
  }

  /** Resolves with the exit code of the client once it has printed everything. */
  #follow(): Promise<number | null> {
    const { client, order } = this.#options;
    const decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };
    const onStdout = (text: string) => {
      const wasReady = this.#reader.ready() !== undefined;
      const output = this.#reader.add(text);
      const line = this.#reader.ready();
      if (!wasReady && line !== undefined) this.#begin(line);
      if (this.#reader.counted() !== undefined) {
        this.#options.state.over = true;
        void this.#detach();
      }
      if (output !== "") order.onOutput("stdout", output);
    };
    const onStderr = (text: string) => {
      if (this.#sent) order.onOutput("stderr", text);
      else this.#said = `${this.#said}${text}`.slice(-4000);
    };
    client.stdout.on("data", (bytes: Buffer) => onStdout(decoders.stdout.write(bytes)));
    client.stderr.on("data", (bytes: Buffer) => bytes.length > 0 && onStderr(decoders.stderr.write(bytes)));
    // A container that ends before it has read everything.
    client.stdin.on("error", () => undefined);
    return new Promise((resolve) => {
      client.once("error", (error) => {
        this.#said = isErrno(error, "ENOENT") ? "ENOENT" : error.message;
        resolve(null);
      });
      client.once("close", (code, signal) => {
        onStdout(decoders.stdout.end());
        const rest = this.#reader.end();
        if (rest !== "") order.onOutput("stdout", rest);
        resolve(code ?? (signal === null ? null : 128 + constants.signals[signal]));
      });
    });
  }

  #begin(line: string): void {
    const { context, client, order, state, facts, work } = this.#options;
    const { shell, image, limits, id } = order;
    context.reached?.("ready");
    if (!state.killed) this.#refusal = verifyReady(line, { shell, image, work: id, limits }, facts);
    if (state.killed || this.#refusal !== undefined) {
      client.stdin.end();
      return;
    }
    rmSync(join(work.path, MARKER), { force: true });
    this.#sent = true;
    client.stdin.end(inputOf({ mark: this.#mark, ...order }));
    context.reached?.("sent");
  }

  /** A container that is not there yet ends by itself when it is, for want of a script. */
  #stop(): void {
    const { context, order, client } = this.#options;
    const remove = async () => {
      await removeContainer(context, order.id).catch(() => undefined);
      client.kill("SIGKILL");
    };
    if (this.#sent) void remove();
    else setTimeout(() => client.exitCode === null && void remove(), START_PATIENCE_MS).unref();
  }

  #detach(): Promise<void> {
    const { work } = this.#options;
    clearInterval(this.#looking);
    // One that fails is tried again when the directory is removed, and reported there.
    this.#detached ??= this.#lookAtDisk()
      .then(() => work.detach())
      .catch(() => undefined);
    return this.#detached;
  }

  async #lookAtDisk(): Promise<void> {
    this.#full ||= await this.#options.work.isFull().catch(() => false);
  }

  #hit(counted: Map<string, string> | undefined): EnforcedLimit[] {
    const count = (name: string) => Number(counted?.get(name) ?? 0);
    const hit: Record<EnforcedLimit, boolean> = {
      memory: count("memory") > 0,
      pids: count("pids") > 0,
      disk: this.#full,
      cpu: isHeldBack({ periods: count("periods"), throttled: count("throttled") }),
    };
    return enforcedLimits.filter((limit) => hit[limit]);
  }
}
