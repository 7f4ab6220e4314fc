// Clean-up after a test file, asked for from anywhere in it. vitest ignores an `afterAll` that is
// called while a test runs, so there is one, registered when this module is loaded.

import { afterAll } from "vitest";

type Task = () => unknown;
const tasks: Task[] = [];

afterAll(async () => {
  for (const task of tasks.splice(0).reverse()) await task();
});

/** The last asked for is done first. */
export function atEnd(task: Task): void {
  tasks.push(task);
}
