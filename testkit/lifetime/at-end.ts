// Clean-up after a test file, registered from anywhere in it. vitest ignores an `afterAll` that is
// called while a test runs, so there is one for every file, in clean-up.ts.

type Task = () => unknown;
const tasks: Task[] = [];

/** Runs in reverse order of registration. */
export function atEnd(task: Task): void {
  tasks.push(task);
}

export async function cleanUp(): Promise<void> {
  for (const task of tasks.splice(0).reverse()) await task();
}
