// The transition table of builds, executed: every event is made to happen to a real row in every state, and what comes of it is
// compared with a table that is written down here, apart from the one that the statement is built from.

import { type JenkinsBuildState, jenkinsBuildStates } from "@holdfast/contracts/endpoints/jenkins";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { type JenkinsLab, openJenkinsLab, type ServedController } from "../../testkit/jenkins/lab.ts";
import { applyToBuild } from "../src/jenkins/builds/transitions/apply.ts";
import { claimItem } from "../src/jenkins/builds/transitions/claim.ts";
import { type BuildEvent, buildEvents, buildTable } from "../src/jenkins/builds/transitions/table.ts";

let lab: JenkinsLab;
let controller: ServedController;
beforeAll(async () => {
  lab = await openJenkinsLab();
  controller = await lab.serve();
});

/** A state that is the row's next one; or `note`; `-` for nothing, `x` where no row can be. */
const expected: Record<BuildEvent, string> = {
  //               claimed   launching connected building removing ended
  leased: "          launching -         -         -        -        -",
  not_leased: "      removing  x         x         x        -        -",
  agent_connected: " -         connected -         -        -        -",
  agent_lost: "      -         -         note      note     -        -",
  agent_returned: "  -         -         note      note     -        -",
  build_started: "   -         building  building  -        -        -",
  build_ended: "     -         -         -         removing -        -",
  item_left: "       -         note      note      -        -        -",
  item_gone: "       removing  removing  removing  -        -        -",
  never_connected: " -         removing  -         -        -        -",
  disconnected: "    -         -         removing  removing -        -",
  lease_ended: "     x         removing  removing  removing -        -",
  node_missing: "    -         removing  removing  removing -        -",
  removed: "         x         x         x         x        ended    -",
};

const wanted = (event: BuildEvent, state: JenkinsBuildState) =>
  expected[event].trim().split(/\s+/)[jenkinsBuildStates.indexOf(state)] ?? "";

async function rowIn(state: JenkinsBuildState): Promise<string> {
  const id = uuidv7();
  const reached = jenkinsBuildStates.indexOf(state);
  await lab.leases.superuser`
    INSERT INTO jenkins_builds (id, org_id, controller_id, queue_id, attempt, task, label_expression, node_labels, lease_label, status,
      lease_id, node_name, leased, connected_at, building_at, reason, removing_at, finished_at)
    VALUES (${id}, ${lab.org}, ${controller.id}, ${Math.floor(Math.random() * 2 ** 40)}, 1, 'job', 'linux', '{linux}', 'tiny', ${state},
      ${uuidv7()}, ${id}, ${reached > 0}, ${reached > 1 ? new Date() : null}, ${reached > 2 ? new Date() : null},
      ${reached > 3 ? '{"code": "x", "message": "", "next_step": ""}' : null}::text::json, ${reached > 3 ? new Date() : null},
      ${reached > 4 ? new Date() : null})`;
  return id;
}

const reason = { code: "test", message: "A test.", next_step: "None." };

describe.for(jenkinsBuildStates)("a build that is %s", (state) => {
  it.for(buildEvents)("VM-06 %s", async (event) => {
    const want = wanted(event, state);
    const cell = buildTable[state][event];
    expect(typeof cell === "object" ? cell.to : { noted: "note", unchanged: "-", impossible: "x" }[cell]).toBe(
      want,
    );
    const id = await rowIn(state);
    const applied = await applyToBuild(lab.leases.system, { buildId: id, event, reason });
    const [row] = await lab.leases.superuser<{ status: string; revision: number }[]>`
      SELECT status, revision FROM jenkins_builds WHERE id = ${id}`;
    const changes = want !== "-" && want !== "x";
    expect(row).toEqual({ status: changes && want !== "note" ? want : state, revision: changes ? 2 : 1 });
    expect(applied?.outcome).toBe(want === "note" ? "noted" : changes ? "moved" : "unchanged");
  });
});

it("VM-06 claims an item once, also when ten do it at once, and again only after its build has ended", async () => {
  const own = await lab.serve();
  const claim = () =>
    claimItem(lab.leases.system, {
      controller: { id: own.id, orgId: lab.org },
      item: { queueId: 7, task: "job", label: "linux" },
      policy: { jenkins_labels: ["linux"], lease_label: "tiny" },
    });
  expect((await Promise.all(Array.from({ length: 10 }, claim))).filter(Boolean)).toHaveLength(1);
  const [build] = await lab.builds(own);
  await applyToBuild(lab.leases.system, { buildId: build?.id ?? "", event: "item_gone", reason });
  expect(await claim()).toBe(false);
  await applyToBuild(lab.leases.system, { buildId: build?.id ?? "", event: "removed" });
  expect(await claim()).toBe(true);
  expect((await lab.builds(own)).map(({ attempt }) => attempt)).toEqual([1, 2]);
});

it("VM-06 claims nothing for a controller that is disabled or does not exist", async () => {
  const off = await lab.serve({ enabled: false });
  for (const id of [off.id, uuidv7()]) {
    const item = { queueId: 7, task: "job", label: "linux" };
    const policy = { jenkins_labels: ["linux"], lease_label: "tiny" };
    expect(await claimItem(lab.leases.system, { controller: { id, orgId: lab.org }, item, policy })).toBe(false);
  }
});
