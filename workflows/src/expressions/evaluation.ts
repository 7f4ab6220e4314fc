// The process in which expressions are evaluated; see evaluator.ts, which ends it when an expression runs away.

import jsonata from "jsonata";
import { forbiddenFunctions } from "./references.ts";

export type Question = { expression: string; context: string; steps: number; bytes: number };
export type Answer =
  | { result: string | undefined }
  | { code: "failed" | "too_long" | "too_large"; message: string };

class TooManySteps extends Error {}

/** JSONata calls it before it evaluates an element. */
const ENTRY = Symbol.for("jsonata.__evaluate_entry") as unknown as string;

async function answer({ expression, context, steps, bytes }: Question): Promise<Answer> {
  let left = steps;
  try {
    const compiled = jsonata(expression);
    for (const name of forbiddenFunctions) compiled.registerFunction(name, () => forbid(name), "<x*:x>");
    compiled.assign(ENTRY, () => {
      if (--left < 0) throw new TooManySteps();
    });
    const value: unknown = await compiled.evaluate(JSON.parse(context));
    const result = JSON.stringify(value, withoutFunctions);
    if (result !== undefined && Buffer.byteLength(result) > bytes) {
      return { code: "too_large", message: `The result has more than ${bytes} bytes.` };
    }
    return { result };
  } catch (error) {
    if (error instanceof TooManySteps) {
      return { code: "too_long", message: `The expression took more than ${steps} steps.` };
    }
    return { code: "failed", message: (error as { message?: string }).message ?? String(error) };
  }
}

/** JSONata's functions are objects; they are no result. */
function withoutFunctions(_: string, value: unknown): unknown {
  const { _jsonata_function, _jsonata_lambda } = (value ?? {}) as Record<string, unknown>;
  return _jsonata_function === true || _jsonata_lambda === true ? undefined : value;
}

function forbid(name: string): never {
  throw new Error(`$${name} cannot be used in a workflow`);
}

process.on("disconnect", () => process.exit());
process.on("message", async (question: Question) => process.send?.(await answer(question)));
process.send?.("ready");
