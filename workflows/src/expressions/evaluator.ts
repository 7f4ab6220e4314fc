// Evaluates expressions in processes of their own. An expression that takes too long or too much memory ends with its process: a loop or
// a pattern that backtracks without end cannot be stopped from inside, and a thread without memory takes its whole process along
// (seen in one of three runs). What goes in and comes out is JSON with a limit.

import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Answer, Question } from "./evaluation.ts";

export type ExpressionLimits = {
  /** Of one evaluation, by the clock. */
  milliseconds: number;
  /** Evaluated elements of the syntax tree. Stops most runaways long before the clock does, and the same way each time. */
  steps: number;
  memoryMib: number;
  /** Of the context, and of each result, as JSON. */
  bytes: number;
};

const expressionLimits: ExpressionLimits = {
  milliseconds: 5_000,
  steps: 1_000_000,
  memoryMib: 64,
  bytes: 1024 * 1024,
};

export class ExpressionError extends Error {
  override name = "ExpressionError";
  readonly code: "failed" | "too_long" | "too_large";

  constructor(code: ExpressionError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** `context`: what `contextNames` stand for. Undefined: the expression found nothing. */
export type Evaluate = (expression: string, context: object) => Promise<unknown>;

export type Evaluator = { evaluate: Evaluate; close: () => Promise<void> };

type Waiting = { question: Question; resolve: (value: unknown) => void; reject: (error: ExpressionError) => void };

export function openEvaluator({
  limits = expressionLimits,
  processes = 1,
}: {
  limits?: ExpressionLimits;
  processes?: number;
} = {}): Evaluator {
  const waiting: Waiting[] = [];
  const running = new Set<ChildProcess>();
  const idle: ChildProcess[] = [];
  let closed = false;

  const evaluate: Evaluate = (expression, context) =>
    new Promise((resolve, reject) => {
      const text = JSON.stringify(context);
      if (Buffer.byteLength(text) > limits.bytes) {
        reject(tooLarge(`The values that the expression can use have more than ${limits.bytes} bytes.`));
        return;
      }
      const { steps, bytes } = limits;
      waiting.push({ question: { expression, context: text, steps, bytes }, resolve, reject });
      serve();
    });

  function serve(): void {
    const next = waiting[0];
    if (!next || closed) return;
    const child = idle.pop();
    if (child) {
      waiting.shift();
      ask(child, next);
    } else if (running.size < processes) start();
  }

  /** The time that a process takes to start is not the expression's. It gets nothing of our environment, and may only read files. */
  function start(): void {
    const child = fork(program, [], {
      execArgv: [`--max-old-space-size=${limits.memoryMib}`, "--permission", "--allow-fs-read=*", "--no-warnings"],
      env: {},
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    running.add(child);
    child.once("message", () => rest(child));
    child.once("exit", () => {
      running.delete(child);
      const index = idle.indexOf(child);
      if (index !== -1) idle.splice(index, 1);
      serve();
    });
    child.on("error", () => undefined);
  }

  /** One that is idle keeps nobody from exiting. */
  function rest(child: ChildProcess): void {
    child.unref();
    child.channel?.unref();
    idle.push(child);
    serve();
  }

  function ask(child: ChildProcess, { question, resolve, reject }: Waiting): void {
    child.ref();
    child.channel?.ref();
    const timer = setTimeout(() => {
      finish(() => reject(tooLong(`The expression took longer than ${limits.milliseconds} ms.`)));
      child.kill("SIGKILL");
    }, limits.milliseconds);
    const onAnswer = (answer: Answer) => {
      finish(() => {
        if ("code" in answer) reject(new ExpressionError(answer.code, answer.message));
        else resolve(answer.result === undefined ? undefined : JSON.parse(answer.result));
      });
      rest(child);
    };
    const onExit = () => finish(() => reject(tooLarge(`The expression used more than ${limits.memoryMib} MiB.`)));
    const finish = (settle: () => void) => {
      clearTimeout(timer);
      child.off("message", onAnswer);
      child.off("exit", onExit);
      settle();
    };
    child.once("message", onAnswer);
    child.once("exit", onExit);
    child.send(question);
  }

  return {
    evaluate,
    close: async () => {
      closed = true;
      await Promise.all([...running].map(end));
    },
  };
}

const program = fileURLToPath(new URL("./evaluation.ts", import.meta.url));

function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.ref();
    child.once("exit", () => resolve());
    child.kill("SIGKILL");
  });
}

const tooLong = (message: string) => new ExpressionError("too_long", message);
const tooLarge = (message: string) => new ExpressionError("too_large", message);
