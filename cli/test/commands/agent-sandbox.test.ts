// `holdfast agent sandbox check` as a process of its own, on this machine.

import { describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { openInstallation } from "../../../testkit/processes/holdfast.ts";

const installation = openInstallation();
atEnd(() => installation.cleanUp());

describe("holdfast agent sandbox check", () => {
  it.skipIf(lacks("root") || lacks("bubblewrap"))("SBX-04 shows backends and limits that work", async () => {
    const env = { HOLDFAST_EXECUTION_BACKEND: "bubblewrap" };
    const { code, stdout } = await installation.run(["agent", "sandbox", "check", "--json"], env);
    const report = JSON.parse(stdout) as { backend: string; backends: { backend: string; limits: object }[] };
    expect([code, report.backend]).toEqual([0, "bubblewrap"]);
    expect(report.backends.find(({ backend }) => backend === "bubblewrap")).toMatchObject({
      limits: {
        memory: { enforced: true },
        pids: { enforced: true },
        cpu: { enforced: true },
        disk: { enforced: true },
      },
    });
  });

  it("SBX-02 fails with what to change where limits are not enforced", async () => {
    const { code, stdout } = await installation.run(["agent", "sandbox", "check"], {
      HOLDFAST_EXECUTION_BACKEND: "host",
    });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^Shell steps are refused: the backend host cannot enforce/);
    expect(stdout).toMatch(/HOLDFAST_EXECUTION_ALLOW_UNENFORCED=memory,pids,disk,cpu/);
    expect(stdout).toMatch(/^host +yes +no +no +no +no +no$/m);
  });
});
