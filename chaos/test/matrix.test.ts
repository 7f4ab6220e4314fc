// `npm run matrix`: that it compares what it says it compares. All rows take minutes; here are those that are quick.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { readAnswerKey } from "../src/matrix/answer-key.ts";
import type { RowResult } from "../src/matrix/row.ts";

const program = fileURLToPath(new URL("../src/matrix/run.ts", import.meta.url));

function matrix(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

/** One of each place that rows are made at, and those that no scenario of the chaos lab covers. */
const quick = ["D08", "D13", "D14", "D20", "N05", "N10"];
const unable = lacks("root") || lacks("nft") || lacks("dnsmasq") || lacks("faketime") || lacks("postgresql");

describe("npm run matrix", () => {
  it.skipIf(unable)(
    "DRIFT-13 gives the answers of the failure matrix to faults that are made for real",
    async () => {
      const { stdout, stderr } = await matrix(...quick, "--json");
      const shown = stderr.trimEnd().split("\n");
      expect(shown.map((line) => line.slice(0, 6)).toSorted()).toEqual(quick.map((row) => `✓  ${row}`));
      const { rows } = JSON.parse(stdout) as { rows: RowResult[] };
      expect(rows.flatMap(({ row, problems }) => problems.map((one) => `${row}: ${one}`))).toEqual([]);
      const key = readAnswerKey();
      expect(rows.map(({ row }) => row)).toEqual(key.map(({ row }) => row).filter((row) => quick.includes(row)));
      for (const { row, ...answer } of rows) {
        const { reason, owner, user_state } = key.find((one) => one.row === row) ?? {};
        expect(answer).toMatchObject({ ok: true, reason, user_state, seconds: expect.any(Number) });
        if (reason !== null) expect(answer).toMatchObject({ owner });
      }
    },
    900_000,
  );

  it("DRIFT-13 says which rows there are", async () => {
    const { code, stderr } = await matrix("D99");
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("There is no row D99; there are: D01, D02"),
    });
    expect(await matrix("--jobs", "none")).toMatchObject({ code: 2 });
    expect(await matrix("--fast")).toMatchObject({ code: 2, stderr: expect.stringContaining("npm run matrix") });
  });
});
