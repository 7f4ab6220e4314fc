// Watches the explanation of a node from the injection on: everything that it names, and when it gives the expected answer.

import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import { codesIn } from "./answer-key.ts";

export type Watch = {
  /** Begins to count, and to look. */
  injected(): void;
  /** What is said counts from here: before, something else was wrong, too. */
  holds(): void;
  /** When nothing differs from what is expected, or the time for it has passed. */
  outcome(): Promise<Watched>;
  stop(): void;
};

export type Watched = { explanation: Explanation; seconds: number | null; problems: string[] };

export type Expected = {
  withinSeconds: number;
  /** Every difference; `said`: all codes that were given as causes so far. */
  differences(explanation: Explanation, said: ReadonlySet<string>): string[];
};

const PAUSE_MS = 250;

export function watchFor({ withinSeconds, differences }: Expected, explain: () => Promise<Explanation>): Watch {
  const said = new Set<string>();
  const done = Promise.withResolvers<Watched>();
  let began: number | undefined;
  let stopped = false;

  const look = async (since: number) => {
    for (;;) {
      const explanation = await explain().catch(() => undefined);
      if (stopped) return;
      const seconds = Math.round((performance.now() - since) / 100) / 10;
      if (explanation) {
        for (const code of codesIn(explanation)) said.add(code);
        const problems = differences(explanation, said);
        if (problems.length === 0) return done.resolve({ explanation, seconds, problems });
        if (seconds > withinSeconds) return done.resolve({ explanation, seconds: null, problems });
      } else if (seconds > withinSeconds) {
        return done.reject(new Error("the api did not explain the node"));
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  };

  return {
    injected() {
      if (began !== undefined) return;
      began = performance.now();
      void look(began);
    },
    holds: () => said.clear(),
    outcome: () => done.promise,
    stop() {
      stopped = true;
    },
  };
}
