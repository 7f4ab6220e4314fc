// Runs one row, and compares what the product says with what the key says.

import { join } from "node:path";
import { type Explanation, explainNode } from "@holdfast/contracts/endpoints/drift";
import { openPool } from "@holdfast/control-plane/database/connect";
import { type NewObservation, recordObservations } from "@holdfast/control-plane/drift/evidence/write";
import { closeLab, type Lab, openLab, type Site } from "../lab/lab.ts";
import { PATIENCE_SECONDS, until, within } from "../until.ts";
import { answerOf, type KeyRow, problemsWith } from "./answer-key.ts";
import type { Installation } from "./installation.ts";
import { type PairResult, pairDifferences, rowsOf } from "./pairs.ts";
import type { Row, RowAt, RowResult } from "./row.ts";
import { openScene, type Scene } from "./scene.ts";
import { type Watch, type Watched, watchFor } from "./watch.ts";

type Outcome = Pick<RowResult, "seconds" | "problems"> & Partial<Pick<Watched, "explanation">>;

const SPARE_SECONDS = 240;
const nothing = { reason: null, signal: null, user_state: "", severity: null, owner: null, next_action: "" };

function resultOf(row: Row, key: KeyRow, { explanation, seconds, problems }: Outcome): RowResult {
  const { how, row: name } = row;
  const ok = problems.length === 0 && seconds !== null;
  const answer = explanation ? answerOf(explanation) : nothing;
  return { row: name, ok, ...answer, seconds, budget: key.detect_within_s, how, problems };
}

export async function runInLab(
  row: RowAt<"lab"> | RowAt<"database">,
  key: KeyRow,
  { all, site, number, keepIn }: { all: readonly KeyRow[]; site: Site; number: number; keepIn: string },
): Promise<RowResult> {
  const directory = join(site.directory, `lab${number}`);
  const problems: string[] = [];
  let lab: Lab | undefined;
  let watch: Watch | undefined;
  let outcome: Outcome = { seconds: null, problems: [] };
  try {
    const options = row.at === "lab" ? row.lab : {};
    lab = await openLab(site, number, { ...options, asByDefault: true });
    const { operator } = lab.control;
    const params = { node_id: lab.node.id };
    const expected = { withinSeconds: key.detect_within_s, differences: problemsWith(key, all) };
    watch = watchFor(expected, () => operator(explainNode, { params }));
    const scene = openScene(lab, watch);
    await scene.isHealthy();
    const limit = key.detect_within_s + SPARE_SECONDS;
    if (row.at === "lab") await within("the fault is made", limit, row.run(scene));
    else await inject(row, lab, scene, watch);
    outcome = await within("an answer", limit, watch.outcome());
    if (row.at === "lab" && row.returns) {
      await scene.repairs();
      await scene.isHealthy();
    }
  } catch (error) {
    problems.push((error as Error).message);
  }
  watch?.stop();
  const result = resultOf(row, key, { ...outcome, problems: [...outcome.problems, ...problems] });
  await closeLab(lab, directory, result.ok ? undefined : join(keepIn, row.row));
  return result;
}

/** Each step after the one before has had its effect. */
async function inject({ evidence }: RowAt<"database">, lab: Lab, scene: Scene, watch: Watch): Promise<void> {
  const sql = openPool({ url: lab.logins.systemUrl, application: "matrix", role: "holdfast_system", max: 1 });
  try {
    // A busy machine may take its time to accept one.
    await until("a connection to the database", PATIENCE_SECONDS, () =>
      sql`SELECT 1`.then(
        () => true,
        () => false,
      ),
    );
    for (const [index, step] of evidence.entries()) {
      if (index > 0) await scene.hasCause();
      if (index === evidence.length - 1) watch.injected();
      const observedAt = new Date();
      const observations = step.map((one) => ({ ...one, nodeId: lab.node.id, observedAt }) as NewObservation);
      await recordObservations(sql, observations);
    }
  } finally {
    await sql.end();
  }
}

export async function runAtInstallation(
  row: RowAt<"installation">,
  key: KeyRow,
  { all, place }: { all: readonly KeyRow[]; place: Installation },
): Promise<RowResult> {
  const expected = { withinSeconds: key.detect_within_s, differences: problemsWith(key, all) };
  const watch = watchFor(expected, place.explain);
  const problems: string[] = [];
  let outcome: Outcome = { seconds: null, problems: [] };
  try {
    const limit = key.detect_within_s + SPARE_SECONDS;
    await within("the fault is made", limit, row.run(place, watch.injected));
    outcome = await within("an answer", limit, watch.outcome());
  } catch (error) {
    problems.push((error as Error).message);
  }
  watch.stop();
  try {
    await row.repair?.(place);
    await place.repair();
  } catch (error) {
    problems.push(`after the repair: ${(error as Error).message}`);
  }
  return resultOf(row, key, { ...outcome, problems: [...outcome.problems, ...problems] });
}

export async function runPair(
  names: readonly [string, string],
  keys: readonly KeyRow[],
  { site, number, keepIn }: { site: Site; number: number; keepIn: string },
): Promise<PairResult> {
  const rows = rowsOf(names);
  const problems: string[] = [];
  let lab: Lab | undefined;
  let watch: Watch | undefined;
  let outcome: Outcome = { seconds: null, problems: [] };
  try {
    lab = await openLab(site, number, { ...rows[0].lab, ...rows[1].lab, asByDefault: true });
    const { operator } = lab.control;
    const params = { node_id: lab.node.id };
    const withinSeconds = Math.max(...keys.map(({ detect_within_s }) => detect_within_s));
    const differences = (explanation: Explanation) => pairDifferences(keys, explanation);
    watch = watchFor({ withinSeconds, differences }, () => operator(explainNode, { params }));
    const scene = openScene(lab, watch);
    await scene.isHealthy();
    // The worse one last: the order is not that of the observations.
    for (const row of rows.toReversed()) await within("the fault is made", SPARE_SECONDS, row.run(scene));
    outcome = await within("both causes", Math.min(withinSeconds, SPARE_SECONDS), watch.outcome());
  } catch (error) {
    problems.push((error as Error).message);
  }
  watch?.stop();
  problems.push(...outcome.problems);
  const ok = problems.length === 0 && outcome.seconds !== null;
  await closeLab(lab, join(site.directory, `lab${number}`), ok ? undefined : join(keepIn, names.join("+")));
  const causes = outcome.explanation?.causes.map(({ reason }) => reason) ?? [];
  return {
    rows: names,
    ok,
    causes,
    seconds: outcome.seconds,
    how: rows.map(({ how }) => how).join("; "),
    problems,
  };
}
