import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fieldsOf, inputOf, programOf, READY, readOutput, unusableName } from "./program.ts";

const mark = "0123456789abcdef";

/** The program in a shell of this host: cgroups and /work are those of the host, or missing. */
function runHere(input: string): string {
  const [shell = "", ...args] = programOf("sh");
  return execFileSync(shell, args, { input, encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] });
}

describe("the program in a container", () => {
  it("SBX-01 reports what it runs in, runs a script with its environment, and reports the end", () => {
    const script = 'printf "%s|%s" "$A" "$(cat)"; (exit 3)';
    const printed = readOutput(mark);
    const output = (() => {
      try {
        return runHere(inputOf({ mark, script, env: { A: 'it\'s "$HOME"\n' } }));
      } catch (error) {
        return (error as { stdout: string }).stdout;
      }
    })();
    expect(printed.add(output)).toBe('it\'s "$HOME"\n|');
    expect(printed.ready()).toMatch(/^holdfast:ready Uid=\d+ .*Seccomp=\d .*shell=sh$/);
    expect(printed.counted()?.get("code")).toBe("3");
  });

  it("EXEC-05 never runs a script of which only a part has arrived", () => {
    const whole = inputOf({ mark, script: "echo ran; echo again", env: {} });
    for (const length of [0, mark.length, mark.length + 5, whole.length - 1]) {
      let output: string;
      try {
        output = runHere(whole.slice(0, length));
      } catch (error) {
        output = (error as { stdout: string }).stdout;
      }
      expect([length, output.includes("ran")]).toEqual([length, false]);
    }
  });

  it("SBX-03 accepts names that a shell can set, and no others", () => {
    expect(unusableName({ GOOD: "", _x1: "" })).toBeUndefined();
    for (const name of ["a.b", "1a", "", "a b", "x;true"]) expect(unusableName({ [name]: "" })).toBe(name);
  });
});

describe("the reader of its output", () => {
  it("SBX-01 finds the output of the script in pieces of any size", () => {
    const pieces = fc.array(fc.nat({ max: 60 }));
    const anyOutput = fc.string({ unit: fc.constantFrom("a", "\0", "0", "1", "\n", "漢") });
    fc.assert(
      fc.property(anyOutput, pieces, (output, cuts) => {
        const whole = `${READY} Uid=1\n${output}\0${mark} code=7 pids=2\nlate`;
        const reader = readOutput(mark);
        let read = "";
        let at = 0;
        for (const cut of [...cuts, whole.length]) {
          read += reader.add(whole.slice(at, at + cut));
          at += cut;
        }
        expect(read + reader.end()).toBe(output);
        expect(reader.ready()).toBe(`${READY} Uid=1`);
        expect(Object.fromEntries(reader.counted() ?? [])).toEqual({ code: "7", pids: "2" });
      }),
    );
  });

  it("SBX-01 returns what was held back if the end is never reported", () => {
    const reader = readOutput(mark);
    expect(reader.add(`${READY}\nout\0${mark.slice(0, 4)}`)).toBe("out");
    expect(reader.end()).toBe(`\0${mark.slice(0, 4)}`);
    expect(reader.counted()).toBeUndefined();
  });

  it("reads fields", () => {
    expect(Object.fromEntries(fieldsOf("x a=1 b= c=d=e f"))).toEqual({ a: "1", b: "", c: "d=e" });
  });
});
