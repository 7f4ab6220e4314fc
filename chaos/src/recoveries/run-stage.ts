// Runs the recoveries of one stage: its tracks side by side, and then what concerns all nodes.

import { join } from "node:path";
import { closeLab, type Lab, openLab, type Site } from "../lab/lab.ts";
import { within } from "../until.ts";
import type { Recovery, RecoveryResult, Stage } from "./recovery.ts";
import { startRecoveryStory } from "./story.ts";

/** Whatever hangs in it. */
const LONGEST_SECONDS = 900;

export type StageOptions = {
  site: Site;
  number: number;
  wanted: ReadonlySet<string>;
  keepIn: string;
  ended(result: RecoveryResult): void;
};

export async function runStage(stage: Stage, options: StageOptions): Promise<void> {
  const { site, number, wanted, ended } = options;
  const chosen = (recoveries: readonly Recovery[] = []) => recoveries.filter(({ name }) => wanted.has(name));
  const tracks = stage.tracks.map((track) => ({ ...track, recoveries: chosen(track.recoveries) }));
  const last = chosen(stage.last);
  const all = [...tracks.flatMap(({ recoveries }) => recoveries), ...last];
  if (all.length === 0) return;
  const keep = join(options.keepIn, stage.name.replaceAll(" ", "-"));
  const failed: RecoveryResult[] = [];
  const report = (result: RecoveryResult) => {
    if (!result.ok) failed.push(result);
    ended(result.ok ? result : { ...result, logs: keep });
  };
  let lab: Lab | undefined;
  try {
    const opened = await openLab(site, number, stage.open);
    lab = opened;
    await Promise.all(
      tracks.map(async ({ node, recoveries }) => {
        for (const recovery of recoveries) report(await runRecovery(recovery, viewOf(opened, node)));
      }),
    );
    for (const recovery of last) report(await runRecovery(recovery, opened));
  } catch (error) {
    const problems = [`the stage "${stage.name}" could not be opened: ${(error as Error).message}`];
    for (const { name, title } of all) report({ ...nothing, name, title, problems });
  }
  await closeLab(lab, join(site.directory, `lab${number}`), failed.length > 0 ? keep : undefined);
}

const nothing = { ok: false, reasons: [], incident_id: null, seconds: null, notes: [] };

async function runRecovery({ name, title, run }: Recovery, lab: Lab): Promise<RecoveryResult> {
  const { story, outcome, repairs } = startRecoveryStory(lab);
  const problems: string[] = [];
  try {
    await within("the end of the recovery", LONGEST_SECONDS, run(story));
    if (outcome.seconds === null) problems.push("it ended without a green checklist");
  } catch (error) {
    problems.push((error as Error).message);
  }
  // Later recoveries find the node as this one did.
  await repairs().catch((error: Error) => problems.push(`could not be repaired: ${error.message}`));
  const { reasons, incidentId, seconds, notes } = outcome;
  return { name, title, ok: problems.length === 0, reasons, incident_id: incidentId, seconds, notes, problems };
}

/** The lab as it is seen from one of its nodes. */
function viewOf(lab: Lab, node: "node" | "second"): Lab {
  if (node === "node") return lab;
  if (!lab.second) throw new Error("this lab has no second node");
  return { ...lab, node: lab.second, second: lab.node };
}
