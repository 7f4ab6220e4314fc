// The output of a process as text: a character that arrives in two pieces is passed on whole.

import type { ChildProcess } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import type { OutputStream } from "./driver.ts";

export function followOutput(
  { stdout, stderr }: Pick<ChildProcess, "stdout" | "stderr">,
  onOutput: (stream: OutputStream, text: string) => void,
): void {
  for (const [stream, from] of [
    ["stdout", stdout],
    ["stderr", stderr],
  ] as const) {
    const decoder = new StringDecoder("utf8");
    const pass = (text: string) => {
      if (text !== "") onOutput(stream, text);
    };
    from?.on("data", (bytes: Buffer) => pass(decoder.write(bytes)));
    from?.on("end", () => pass(decoder.end()));
  }
}
