// holdfast agent sandbox check: which backends work on this machine, which limits they really enforce, and how to get the missing
// ones. It asks the same code that runs steps, with the same settings.

import { enforcedLimits } from "@holdfast/contracts/execution/limits";
import { readSettings } from "@holdfast/kit/settings";
import type { SandboxCheck } from "@holdfast/node-agent/drivers/sandbox/driver";
import type { Command } from "commander";
import { exitCodes } from "../../failure.ts";
import { printResult, table } from "../../output.ts";

export function addSandbox(agent: Command): void {
  agent
    .command("sandbox")
    .description("what isolates shell steps on this machine")
    .command("check")
    .description("show which backends work here, which limits are enforced, and how to get the missing ones")
    .option("--json", "print JSON")
    .action(check);
}

type Report = {
  /** What shell steps would run in; null: they would be refused. */
  backend: string | null;
  problem: string | null;
  limits: Record<string, number>;
  backends: SandboxCheck[];
};

async function check(options: { json?: boolean }): Promise<void> {
  const [{ executionSettings }, { sandboxDrivers }, { createBackends }, { policyOf, unenforcedOf }, { uuidv7 }] =
    await Promise.all([
      import("@holdfast/node-agent/execution/settings"),
      import("@holdfast/node-agent/drivers/sandbox/all"),
      import("@holdfast/node-agent/execution/backends"),
      import("@holdfast/node-agent/execution/policy"),
      import("@holdfast/kit/uuid"),
    ]);
  const settings = readSettings(executionSettings, process.env);
  const policy = policyOf(settings);
  // An owner that no agent is: nothing of theirs is touched.
  const owner = uuidv7();
  const { workdirRoot, image } = settings;
  const drivers = sandboxDrivers({ owner, root: `${workdirRoot}/${owner}`, image, environment: process.env });
  const choice = await createBackends(drivers, settings.backend).choose();
  const problem = "refused" in choice ? choice.refused : (unenforcedOf(choice.check, policy) ?? null);
  const backends = await Promise.all(drivers.map((driver) => driver.check()));
  const report: Report = {
    backend: "refused" in choice || problem !== null ? null : choice.driver.name,
    problem,
    limits: { time_ms: policy.timeoutMs, output_characters: policy.outputCharacters, ...policy.limits },
    backends,
  };
  printResult(options, report, forPeople);
  if (report.backend === null) process.exitCode = exitCodes.failed;
}

function forPeople({ backend, problem, backends }: Report): string {
  const rows = table(backends, [
    { title: "backend", of: (one) => one.backend },
    { title: "works", of: (one) => (one.problem ? "no" : "yes") },
    { title: "isolates", of: (one) => (one.backend === "host" ? "no" : "yes") },
    ...enforcedLimits.map((limit) => ({
      title: limit,
      of: (one: SandboxCheck) => (one.limits[limit].enforced ? "enforced" : "no"),
    })),
  ]);
  const verdict =
    backend === null
      ? `Shell steps are refused: ${problem}.`
      : `Shell steps run in ${backend}. Time and output are always limited.`;
  return [verdict, "", rows, ...backends.flatMap(remediesOf)].join("\n");
}

/** One paragraph for each backend that is not complete. */
function remediesOf({ backend, problem, limits }: SandboxCheck): string[] {
  const missing = new Map<string, string[]>();
  for (const limit of enforcedLimits) {
    const found = limits[limit];
    if (found.enforced) continue;
    const text = `${found.what}. To change that: ${found.remedy}.`;
    missing.set(text, [...(missing.get(text) ?? []), limit]);
  }
  const lines = [
    ...(problem ? [`  ${problem.what}. To change that: ${problem.remedy}.`] : []),
    ...[...missing].map(([text, names]) => `  ${names.join(", ")}: ${text}`),
  ];
  return lines.length === 0 ? [] : ["", `${backend}:`, ...lines];
}
