// Output whose reader has gone, as with `| head`: the command ends without a word, as other tools do. What it has to remove first, it
// registers here.

import { reportFailure } from "./failure.ts";

/** 128 + SIGPIPE: what a shell reports of a tool that the signal ended. */
const BROKEN_PIPE = 141;

/** These serve others, who are not to suffer because nobody reads the output any more. */
const servers = new Set(["up", "api", "gateway", "worker", "ingress", "agent"]);

let finish: () => Promise<void> = async () => undefined;

/** Called when nobody reads the output any more; the process exits when it has settled. */
export function finishOnClosedOutput(work: () => Promise<void>): void {
  finish = work;
}

export function handleClosedOutput(command: string | undefined, options: { json: boolean }): void {
  const serves = command !== undefined && servers.has(command);
  let ending = false;
  const onError = (error: NodeJS.ErrnoException) => {
    if (serves || ending) return;
    ending = true;
    const exit = () =>
      process.exit(error.code === "EPIPE" ? BROKEN_PIPE : reportFailure(outputFailure(error), options));
    finish().then(exit, exit);
  };
  for (const stream of [process.stdout, process.stderr]) stream.on("error", onError);
}

function outputFailure({ message }: Error): Error {
  return new Error(`Cannot write the output: ${message}.`);
}
