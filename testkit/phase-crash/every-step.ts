// Proves that an operation of phases (tasks/phases) survives a crash after every step: it is run with a crash before and
// after each plan, act and undo, and then finished or undone by somebody who has nothing but the record. A crash here is
// a call that never returns: nothing after it happens, as in a process that is gone.

import { type Operation, type Phase, runPhases, undoPhases } from "../../tasks/phases/phases.ts";

export type CrashTest<Context> = {
  /** A new place for each run: nothing is there yet, and nothing is recorded. */
  prepare: () => Promise<Operation<Context>>;
  /** Throws unless everything is there, and once. */
  expectMade: (operation: Operation<Context>, step: string) => Promise<void> | void;
  /** Throws if anything is left, or recorded. */
  expectNothing: (operation: Operation<Context>, step: string) => Promise<void> | void;
};

type Hook = (step: string) => Promise<void> | void;

/** Returns the steps that were crashed at, so that a test can see that there were any. */
export async function crashAfterEveryStep<Context>(test: CrashTest<Context>): Promise<string[]> {
  const making = await stepsOf(test, (operation) => runPhases(operation));
  for (const step of making) {
    const finished = await crashedAt(test, step, runPhases);
    await runPhases(finished);
    await test.expectMade(finished, `crash at ${step}, then finished`);

    const undone = await crashedAt(test, step, runPhases);
    await undoPhases(undone);
    await test.expectNothing(undone, `crash at ${step}, then undone`);

    await crashDuringUndo(test, step, () => crashedAt(test, step, runPhases));
  }
  await crashDuringUndo(test, "nothing", async () => {
    const complete = await test.prepare();
    await runPhases(complete);
    return complete;
  });
  return making;
}

/** The undo, of what a crash left or of a complete operation, is cut short as well, at every step of it. */
async function crashDuringUndo<Context>(
  test: CrashTest<Context>,
  step: string,
  begin: () => Promise<Operation<Context>>,
): Promise<void> {
  const recorded = await begin();
  const undoing: string[] = [];
  await undoPhases(withHook(recorded, (entered) => void undoing.push(entered)));
  for (const second of undoing) {
    const operation = await begin();
    await crashAt(operation, second, undoPhases);
    await undoPhases(operation);
    await test.expectNothing(operation, `crash at ${step}, undo crashed at ${second}`);

    const again = await begin();
    await crashAt(again, second, undoPhases);
    await runPhases(again);
    await test.expectMade(again, `crash at ${step}, undo crashed at ${second}, then made again`);
  }
}

/** Every plan is kept, and every act and undo is called twice in a row. */
export async function repeatEveryPhase<Context>(test: CrashTest<Context>): Promise<void> {
  const operation = await test.prepare();
  const twice = { ...operation, phases: operation.phases.map(repeated) };
  await runPhases(twice);
  await test.expectMade(operation, "each phase twice");
  await runPhases(twice);
  await test.expectMade(operation, "the whole operation twice");
  await undoPhases(twice);
  await test.expectNothing(operation, "each undo twice");
}

/** A phase that fails, before or after it acted, undoes everything. */
export async function failAtEveryStep<Context>(test: CrashTest<Context>): Promise<void> {
  for (const step of await stepsOf(test, (operation) => runPhases(operation))) {
    const operation = await test.prepare();
    const failing = withHook(operation, (entered) => {
      if (entered === step) throw new Error(`fails at ${step}`);
    });
    const failure = await runPhases(failing).then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (failure !== `fails at ${step}`) throw new Error(`${step}: it ended with ${failure}`);
    await test.expectNothing(operation, `failure at ${step}`);
  }
}

async function stepsOf<Context>(
  test: CrashTest<Context>,
  run: (operation: Operation<Context>) => Promise<unknown>,
): Promise<string[]> {
  const steps: string[] = [];
  await run(withHook(await test.prepare(), (step) => void steps.push(step)));
  if (steps.length === 0) throw new Error("the operation has no step to crash at");
  return steps;
}

type Work<Context> = (operation: Operation<Context>) => Promise<unknown>;

async function crashedAt<Context>(test: CrashTest<Context>, step: string, work: Work<Context>) {
  const operation = await test.prepare();
  await crashAt(operation, step, work);
  return operation;
}

/** Resolves when the step was reached. What runs stays there. */
async function crashAt<Context>(operation: Operation<Context>, step: string, work: Work<Context>): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const crashing = withHook(operation, (entered) => {
    if (entered !== step) return;
    reached.resolve();
    return new Promise<never>(() => undefined);
  });
  await Promise.race([
    reached.promise,
    work(crashing).then(() => {
      throw new Error(`${step} was never reached`);
    }),
  ]);
}

function withHook<Context>(operation: Operation<Context>, hook: Hook): Operation<Context> {
  return { ...operation, phases: operation.phases.map((phase) => hooked(phase, hook)) };
}

function hooked<Context>(phase: Phase<Context, unknown>, hook: Hook): Phase<Context, unknown> {
  const { name, plan, act, undo } = phase;
  const around =
    <Args extends unknown[], Result>(what: string, work: (...args: Args) => Promise<Result> | Result) =>
    async (...args: Args): Promise<Result> => {
      await hook(`before ${what} of ${name}`);
      const result = await work(...args);
      await hook(`after ${what} of ${name}`);
      return result;
    };
  return {
    name,
    act: around("act", act),
    ...(plan && { plan: around("plan", plan) }),
    ...(undo && { undo: around("undo", undo) }),
  };
}

function repeated<Context>(phase: Phase<Context, unknown>): Phase<Context, unknown> {
  const { act, undo } = phase;
  const twice = (work: typeof act): typeof act => {
    return async (context, plan) => {
      await work(context, plan);
      await work(context, plan);
    };
  };
  return { ...phase, act: twice(act), ...(undo && { undo: twice(undo) }) };
}
