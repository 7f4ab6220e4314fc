// holdfast workflow: documents that describe steps, and what is published of them.

import { Command } from "commander";
import { addApply } from "./apply.ts";
import { addConvert } from "./convert.ts";
import { addDiff } from "./diff.ts";
import { addEvaluate } from "./evaluate.ts";
import { addPublish } from "./publish.ts";
import { addRun } from "./run.ts";
import { addShow } from "./show.ts";
import { addSimulate } from "./simulate.ts";
import { addTrigger } from "./trigger.ts";
import { addValidate } from "./validate.ts";

export function workflowCommand(): Command {
  const workflow = new Command("workflow").description("workflows: steps that run in order, here and on agents");
  addApply(workflow);
  addShow(workflow);
  addPublish(workflow);
  addRun(workflow);
  addTrigger(workflow);
  addValidate(workflow);
  addConvert(workflow);
  addDiff(workflow);
  addEvaluate(workflow);
  addSimulate(workflow);
  return workflow;
}
