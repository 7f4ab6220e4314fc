// Watches the explanation of a node from the injection on: everything that it names, and when it gives the expected answer.

import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import { type Answer, answerOf, codesIn, differences, forbiddenIn, type KeyRow, keyFor } from "./answer-key.ts";

export type Watch = {
  /** Begins to count, and to look. */
  injected(): void;
  /** What is said counts from here: before, something else was wrong, too. */
  holds(): void;
  /** When the answer was given and nothing forbidden was said, or the time for it has passed. */
  outcome(): Promise<{ answer: Answer; seconds: number | null; problems: string[] }>;
  stop(): void;
};

const PAUSE_MS = 250;

export function watchFor(key: KeyRow, all: readonly KeyRow[], explain: () => Promise<Explanation>): Watch {
  const said = new Set<string>();
  const done = Promise.withResolvers<Awaited<ReturnType<Watch["outcome"]>>>();
  let began: number | undefined;
  let stopped = false;

  const look = async (since: number) => {
    for (;;) {
      const explanation = await explain().catch(() => undefined);
      if (stopped) return;
      const seconds = Math.round((performance.now() - since) / 100) / 10;
      if (explanation) {
        for (const code of codesIn(explanation)) said.add(code);
        const wanted = keyFor(key, explanation.causes[0]?.reason, all);
        const problems = [...differences(wanted, explanation), ...forbiddenIn(key, said)];
        const answer = answerOf(explanation);
        if (problems.length === 0) return done.resolve({ answer, seconds, problems });
        if (seconds > key.detect_within_s) return done.resolve({ answer, seconds: null, problems });
      } else if (seconds > key.detect_within_s) {
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
