import { expect, it } from "vitest";
import { labelOf } from "./of-item.ts";

it.for([
  [{ why: "There are no nodes with the label ‘linux&&docker’" }, "linux&&docker"],
  [{ why: "All nodes of label ‘a||b’ are offline" }, "a||b"],
  [{ why: "Waiting for next available executor on ‘(a||b)&&!c’" }, "(a||b)&&!c"],
  [{ why: "Waiting for next available executor on 'x86'" }, "x86"],
  [{ why: "Waiting for next available executor on x86" }, "x86"],
  [{ why: "‘old’ is offline; There are no nodes with the label ‘linux’" }, "linux"],
  [{ why: "Waiting for next available executor" }, undefined],
  [{ why: "In the quiet period. Expires in 4.9 sec" }, undefined],
  [{ why: "Build #3 is already in progress (ETA: 1 min)" }, undefined],
  [{ why: null }, undefined],
  [{}, undefined],
  [{ why: "Waiting for next available executor on ‘node-1’", task: { labelExpression: "linux" } }, "linux"],
  [{ assignedLabel: { name: "bsd" }, task: { labelExpression: "linux" } }, "bsd"],
  [
    { assignedLabel: { name: " " }, task: { labelExpression: "" }, why: "There are no nodes with the label ‘z’" },
    "z",
  ],
] as const)("VM-06 finds the label of %j", ([item, expected]) => {
  expect(labelOf(item)).toBe(expected);
});
