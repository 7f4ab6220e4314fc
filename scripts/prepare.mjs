// Brings a checkout to the point where it can run: packages installed, web app built, agent packed. Plain
// JavaScript that Node.js 20 can run, because before the install there may be nothing newer.
// Each step is skipped when its inputs have not changed since it last succeeded.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
/** The Node.js 24 that the project brings along. */
export const node = join(root, "node_modules/.bin/node");

export async function prepare() {
  const installed = join(root, "node_modules/.holdfast-installed");
  // Somebody emptied or damaged node_modules since: then the stamp means nothing.
  if (!existsSync(node)) rmSync(installed, { force: true });
  await step({
    label: "Installing packages (only the first time; about a minute)",
    done: "Packages are installed",
    stamp: installed,
    inputs: () => digest([join(root, "package-lock.json")], `${process.arch} ${process.platform}`),
    // Not `npm ci`: it refuses a lockfile without the optional packages of platforms that a registry
    // does not carry. The lockfile is followed all the same, and not rewritten.
    work: async () => {
      await run("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]);
      if (existsSync(node)) await run(node, [join(root, "scripts/warm-compile-cache.mjs")]);
    },
  });
  if (!existsSync(node)) {
    throw new Error(
      `No Node.js 24 for ${process.platform}-${process.arch} came with the packages. Holdfast runs on Linux x64 and ` +
        "arm64. Is `omit=optional` set (npm config get omit)? If not, remove node_modules and run this again.",
    );
  }
  await step({
    label: "Building the web app",
    done: "Web app is built",
    stamp: join(root, "web/dist/.built"),
    inputs: () => digest(["web", "contracts/src", "terminal-client/src"].flatMap(filesBelow), "web"),
    work: () =>
      run(node, [join(root, "node_modules/vite/bin/vite.js"), "build", "--logLevel", "error"], join(root, "web")),
  });
  await step({
    label: "Packing the agent for other machines",
    done: "Agent is packed",
    stamp: join(root, "node-agent/dist/.packed"),
    inputs: () =>
      digest([...agentFiles.map((file) => join(root, file)), ...agentSources.flatMap(filesBelow)], "agent"),
    work: () => run(node, [join(root, "scripts/pack-agent.ts")]),
  });
}

const agentSources = [
  "cli/src",
  "contracts/src",
  "kit/src",
  "node-agent/src",
  "tasks",
  "scripts/agent-archive",
  "scripts/agent-checks",
  "deploy/systemd",
];
const agentFiles = [
  "package-lock.json",
  "node-agent/package.json",
  "deploy/install-agent.sh",
  "deploy/holdfast-agent.sh",
  "deploy/last-words.sh",
];

/**
 * Runs a command and shows its output only if it fails. On a request to stop, it is ended first:
 * an install that lives on would work against the next one in the same directory.
 */
export function run(command, args, cwd = root) {
  return new Promise((resolve, reject) => {
    const stop = (signal) => {
      child.once("exit", () => process.exit(signal === "SIGINT" ? 130 : 143));
      process.kill(-child.pid, "SIGTERM");
      setTimeout(() => process.kill(-child.pid, "SIGKILL"), 3_000);
    };
    // Before the child exists: a signal that comes while it is being made waits for the next turn.
    for (const signal of stopSignals) process.once(signal, stop);
    // In a group of its own: npm's children are ended with it.
    const child = spawn(command, args, {
      cwd,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: withOwnNode(),
    });
    child.once("exit", () => {
      for (const signal of stopSignals) process.off(signal, stop);
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      if (code === 0) resolve(undefined);
      else reject(new Error(`\`${command} ${args[0]}\` ended with ${signal ?? code}:\n${output.trim()}`));
    });
  });
}

const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"];

export function withOwnNode() {
  return { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}` };
}

async function step({ label, done, stamp, inputs, work }) {
  const wanted = inputs();
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  const started = Date.now();
  const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`;
  const interactive = process.stdout.isTTY;
  if (!interactive) process.stdout.write(`  ${label} …\n`);
  const ticker = interactive
    ? setInterval(() => process.stdout.write(`\r\x1b[2K\x1b[2m  ${label} … ${seconds()}\x1b[22m`), 250)
    : setInterval(() => process.stdout.write(`  still at it after ${seconds()}\n`), 15_000);
  try {
    await work();
  } finally {
    clearInterval(ticker);
    if (interactive) process.stdout.write("\r\x1b[2K");
  }
  writeFileSync(stamp, wanted);
  process.stdout.write(`✓ ${done} ${seconds()}\n`);
}

function digest(files, salt) {
  const hash = createHash("sha256").update(salt);
  for (const file of files) hash.update(`\0${relative(root, file)}\0`).update(readFileSync(file));
  return hash.digest("hex");
}

function filesBelow(directory) {
  const skipped = new Set(["node_modules", "dist", "test"]);
  return readdirSync(join(root, directory), { withFileTypes: true })
    .filter((entry) => !skipped.has(entry.name))
    .flatMap((entry) =>
      entry.isDirectory() ? filesBelow(join(directory, entry.name)) : [join(root, directory, entry.name)],
    )
    .sort();
}
