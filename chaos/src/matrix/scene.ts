// Where a row happens: a lab with the product's default pace and limits, and the people who look at it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { createTask, getTask, type Task } from "@holdfast/contracts/endpoints/tasks";
import type { Fault } from "../faults/fault.ts";
import type { Lab } from "../lab/lab.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";
import type { Watch } from "./watch.ts";

export type Scene = {
  lab: Lab;
  /** The time until the answer counts from here. */
  breaks(fault: Fault): Promise<void>;
  repairs(): Promise<void>;
  /** `holdfast node evidence` at the desk, with what an operator saw. */
  handsIn(...flags: string[]): Promise<void>;
  /** The operator copies `diagnostics.log` from the host, as soon as it has this record, and hands it in. */
  handsInRecords(reason: string): Promise<void>;
  gives(params?: Record<string, unknown>, expiresSeconds?: number): Promise<Task>;
  reads(task: Task): Promise<Task>;
  /** The server has noticed that the node does not report. */
  isSilent(): Promise<void>;
  /** The node reports again; what is said counts from here. */
  isBack(): Promise<void>;
  isHealthy(): Promise<void>;
  hasCause(): Promise<void>;
};

/** How long an operator's look at a host may take. */
const LOOK_SECONDS = 240;

export function openScene(lab: Lab, watch: Pick<Watch, "injected" | "holds">): Scene {
  const { operator, holdfast } = lab.control;
  const faults: Fault[] = [];
  const params = { node_id: lab.node.id };
  const handsIn: Scene["handsIn"] = async (...flags) => {
    const { code, stderr } = await holdfast("node", "evidence", lab.node.name, ...flags, "--json");
    if (code !== 0) throw new Error(`holdfast node evidence: ${stderr}`);
  };
  return {
    lab,
    async breaks(fault) {
      // Known before it is done: whatever happens on the way is repaired.
      faults.push(fault);
      watch.injected();
      await fault.inject();
    },
    async repairs() {
      for (let fault = faults.pop(); fault !== undefined; fault = faults.pop()) await fault.repair();
    },
    handsIn,
    async handsInRecords(reason) {
      const file = join(lab.directory, "diagnostics.copy");
      await until(`the host has a record of ${reason}`, LOOK_SECONDS, async () => {
        const text = await lab.node.host.run("cat", join(lab.node.stateDir, "diagnostics.log"));
        if (!text.includes(`"reason":"${reason}"`)) return false;
        writeFileSync(file, text);
        return true;
      });
      await handsIn("--diagnostics", file);
    },
    gives: (given = {}, expires_in_seconds) =>
      operator(createTask, {
        params,
        body: {
          ...{ type: "node.noop", params: given },
          ...(expires_in_seconds === undefined ? {} : { expires_in_seconds }),
        },
      }),
    reads: (task) => operator(getTask, { params: { task_id: task.id } }),
    async isSilent() {
      await until(`${lab.node.name} is silent`, LOOK_SECONDS, async () => {
        const { causes } = await operator(explainNode, { params });
        return causes.some(({ reason }) => reason === "agent_down");
      });
    },
    async isBack() {
      await until(`${lab.node.name} reports`, PATIENCE_SECONDS, async () => {
        const { causes } = await operator(explainNode, { params });
        return causes.every(({ reason }) => reason !== "agent_down");
      });
      watch.holds();
    },
    async isHealthy() {
      let instead = "";
      const ask = async () => {
        const { healthy, incident, headline } = await operator(explainNode, { params });
        instead = `: ${headline}`;
        return healthy && incident === null;
      };
      await until(`${lab.node.name} is healthy`, PATIENCE_SECONDS, ask, () => instead);
    },
    async hasCause() {
      await until(`${lab.node.name} has a cause`, PATIENCE_SECONDS, async () => {
        const { healthy } = await operator(explainNode, { params });
        return !healthy;
      });
    },
  };
}
