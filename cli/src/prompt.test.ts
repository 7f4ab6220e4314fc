import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ask } from "./prompt.ts";

afterEach(() => vi.restoreAllMocks());

/** As if a person typed this line at a terminal. */
function typed(line: string): void {
  const terminal = Object.assign(new PassThrough(), { isTTY: true });
  vi.spyOn(process, "stdin", "get").mockReturnValue(terminal as unknown as typeof process.stdin);
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
  terminal.write(`${line}\n`);
}

describe("what a person types", () => {
  it("SEC-03 is a password with every space in it, because the server takes it so", async () => {
    typed("  two words ");
    expect(await ask("Password", { secret: true, instead: "--password-stdin" })).toBe("  two words ");
  });

  it("is otherwise taken without the spaces around it", async () => {
    typed(" ada@kelp.example ");
    expect(await ask("Email", { instead: "--email" })).toBe("ada@kelp.example");
  });
});
