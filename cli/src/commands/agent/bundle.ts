// holdfast agent bundle: reads a recovery bundle on the host that it is for, and applies it. Neither needs a connection: the
// agent tries what was applied, and replaces nothing before that has worked.

import { readFileSync } from "node:fs";
import type { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { diagnosticReasons } from "@holdfast/contracts/reasons/node";
import { readSettings, UsageError } from "@holdfast/kit/settings";
import type { Staged } from "@holdfast/node-agent/bundle/staged";
import { type Command, Option } from "commander";
import { Refusal } from "../../failure.ts";
import { localTime, printResult } from "../../output.ts";
import { readAllInput } from "../../prompt.ts";

type BundleOptions = { line?: string; rootSha256?: string; node?: string; newState?: boolean; json?: boolean };

export function addBundle(agent: Command): void {
  const bundle = agent.command("bundle").description("recovery bundles from `holdfast node bundle create`");
  withBundleOptions(bundle.command("inspect"))
    .description("verify a recovery bundle and show what it would change, without its secret")
    .action(inspect);
  withBundleOptions(bundle.command("apply"))
    .description("apply a recovery bundle; the agent switches to it once it has worked")
    .option("--new-state", "this machine has lost its state directory; requires --node")
    .action(apply);
}

function withBundleOptions(command: Command): Command {
  return command
    .argument("[file]", "the bundle")
    .addOption(new Option("--line <line>", "the bundle as one line, or `-` to read it from standard input"))
    .option(
      "--root-sha256 <hex>",
      "the root that signed it, as printed on the server, if this host does not have it",
    )
    .option("--node <id or name>", "refuse a bundle of any other node")
    .option("--json", "print JSON");
}

async function inspect(file: string | undefined, options: BundleOptions): Promise<void> {
  await explained(async () => {
    const { inspectBundle } = await import("@holdfast/node-agent/bundle/apply");
    const { bundle, refusal } = inspectBundle(await read(file, options), await optionsOf(options));
    const { token: _, ...content } = bundle.content;
    const result = { ...content, applies_here: refusal === undefined, refusal: refusal?.code ?? null };
    printResult(options, result, () =>
      [
        ...describe(bundle),
        refusal
          ? `It cannot be applied here: ${refusal.message}\n  ${refusal.nextStep}`
          : "It can be applied here.",
      ].join("\n"),
    );
  });
}

async function apply(file: string | undefined, options: BundleOptions): Promise<void> {
  await explained(async () => {
    const { applyBundle } = await import("@holdfast/node-agent/bundle/apply");
    const resolved = await optionsOf(options);
    const staged = applyBundle(await read(file, options), resolved);
    const { runningAgent } = await import("@holdfast/node-agent/journal/lock");
    const { agentVersion } = await import("@holdfast/node-agent/version");
    const { bundle, applied, files } = staged;
    const { bundle_id: id, seq, node } = bundle.content;
    const changed = files.map(({ path }) => path);
    const isRunning = runningAgent(resolved.stateDir) !== undefined;
    const result = { id, seq, node_id: node.id, node_name: node.name, applied_at: applied.applied_at };
    printResult(options, { ...result, changed_files: changed, agent_running: isRunning }, () =>
      [
        `Bundle ${seq} for ${node.name} is stored. The agent tries it until it works or is refused; until then nothing of this node is replaced.`,
        ...nextSteps(staged, isRunning),
        ...upgradeHint(bundle, agentVersion),
        "See how it goes: holdfast agent diagnose",
      ].join("\n"),
    );
  });
}

/** Another version may work as well: the server says so with the node's first heartbeat. */
function upgradeHint({ content }: RecoveryBundle, present: string): string[] {
  const { agent } = content;
  if (!agent || agent.version === present) return [];
  return [
    `This agent has version ${present}, the server's has ${agent.version}. To upgrade it, run the command that \`holdfast node release\` prints on the server.`,
    ...agent.archives.map(({ arch, file, sha256 }) => `  ${arch}: ${file}, SHA-256 ${sha256}`),
  ];
}

function nextSteps({ files }: Staged, isRunning: boolean): string[] {
  const paths = files.map(({ path }) => path);
  if (paths.length > 0) {
    return [
      `Changed, and restored if the bundle is refused: ${paths.join(", ")}`,
      "Run now: systemctl daemon-reload && systemctl restart holdfast-agent",
    ];
  }
  if (isRunning) return ["The agent is running and tries it within seconds."];
  return ["No agent is running here. Start it: systemctl restart holdfast-agent, or holdfast agent run"];
}

function describe({ content }: RecoveryBundle): string[] {
  const { seq, node, issued_by, issued_at, expires_at, profile, after, before, agent, files } = content;
  const versions = ({ profile: one, key_set, trust_bundle }: typeof after) =>
    `profile ${one ? `${one.name} version ${one.version}` : "unknown"}, task keys ${key_set}, roots ${trust_bundle}`;
  return [
    `Recovery bundle ${seq} for ${node.name} (${node.id}), signed by a root that is trusted here.`,
    `Created by ${issued_by} ${localTime(issued_at)}, expires ${localTime(expires_at)}. Correlation id ${content.correlation_id}.`,
    `Addresses: ${Object.entries(profile.endpoints)
      .map(([name, url]) => `${name} ${url}`)
      .join(", ")}`,
    `Before, as the server knows it: host ${before.hostname ?? "unknown"}, ${versions(before)}`,
    `After: ${versions(after)}`,
    agent ? `Agent of the server: ${agent.version}` : "The server has no agent packed.",
    `Removed from ${files.env.path} if set: ${files.env.unset.join(", ")}`,
  ];
}

async function read(file: string | undefined, { line }: BundleOptions) {
  const { parseFile, parseLine } = await import("@holdfast/node-agent/bundle/read");
  if ((file === undefined) === (line === undefined)) {
    throw new UsageError("Name the file of the bundle, or use --line with the pasted line.");
  }
  if (line !== undefined) return parseLine(line === "-" ? await readAllInput() : line);
  try {
    return parseFile(readFileSync(file ?? "", "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new UsageError(`The file ${file} cannot be read: ${(error as Error).message}.`);
  }
}

async function optionsOf({ rootSha256, node, newState }: BundleOptions) {
  const { joinSettings } = await import("@holdfast/node-agent/settings");
  if (newState && node === undefined) throw new UsageError("--new-state requires --node <id or name>.");
  if (rootSha256 !== undefined && !/^[0-9a-f]{64}$/i.test(rootSha256)) {
    throw new UsageError(
      "--root-sha256 takes 64 hexadecimal digits, as `holdfast node bundle create` printed them.",
    );
  }
  const { stateDir } = readSettings({ stateDir: joinSettings.stateDir }, process.env);
  return { stateDir, rootSha256, node, newState: newState === true };
}

async function explained(work: () => Promise<void>): Promise<void> {
  const [{ BundleRefused }, { HostProblem }] = await Promise.all([
    import("@holdfast/node-agent/bundle/read"),
    import("@holdfast/node-agent/identity/state-directory"),
  ]);
  try {
    await work();
  } catch (error) {
    if (error instanceof BundleRefused) {
      throw new Refusal(error.code, { message: error.message, nextStep: error.nextStep });
    }
    if (!(error instanceof HostProblem)) throw error;
    throw new Refusal(error.reason, {
      message: error.message,
      nextStep: diagnosticReasons[error.reason].nextStep,
    });
  }
}
