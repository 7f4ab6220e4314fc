// Every limit of a shell step is exceeded on every backend that enforces it, from the dispatch to the result, and named there. A
// backend that enforces none refuses the step.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import {
  openRootlessPodman,
  openTestPodman,
  startTestDocker,
  type TestEngine,
} from "../../testkit/containers/engines.ts";
import { TEST_IMAGE } from "../../testkit/containers/image.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { running, uniqueSleep } from "./drivers/sandbox/bench.ts";
import { connectedSteps } from "./support/connected-steps.ts";

type Facility = Parameters<typeof lacks>[0];
const ofContainers: Facility[] = ["docker", "podman", "runc", "catatonit", "busybox"];

const backends: { backend: string; needs: Facility[]; begin?: () => Promise<TestEngine> }[] = [
  { backend: "bubblewrap", needs: ["bubblewrap"] },
  { backend: "docker", needs: ofContainers, begin: startTestDocker },
  { backend: "podman", needs: ofContainers, begin: openTestPodman },
];

/** By the name that the agent looks for on its PATH. */
function putOnPath(name: string, { command }: TestEngine): void {
  const directory = scratchDirectory();
  writeFileSync(join(directory, name), `#!/bin/sh\nexec ${command.join(" ")} "$@"\n`, { mode: 0o755 });
  const before = process.env["PATH"];
  process.env["PATH"] = `${directory}:${before}`;
  atEnd(() => {
    process.env["PATH"] = before;
  });
}

describe.for(backends)("a shell step in $backend", ({ backend, needs, begin }) => {
  const without = (["root", ...needs] as Facility[]).some((name) => lacks(name));

  it.skipIf(without)(
    "SBX-02 gets the limits of the owner's settings, by the names of other systems, and names the one that it hits",
    async () => {
      if (begin) putOnPath(backend, await begin());
      const owned = {
        ...{ HOLDFAST_EXECUTION_BACKEND: backend, VESPID_AGENT_DOCKER_IMAGE: TEST_IMAGE },
        ...{ HOLDFAST_EXECUTION_ALLOW_UNENFORCED: "", VESPID_AGENT_DOCKER_TIMEOUT_MS: "600000" },
        ...{ VESPID_AGENT_DOCKER_MEMORY_MB: "32", VESPID_AGENT_DOCKER_PIDS: "24" },
        ...{ HOLDFAST_EXECUTION_DISK_MB: "2", VESPID_AGENT_DOCKER_OUTPUT_MAX_CHARS: "300" },
      };
      const { step, cgroups } = await connectedSteps({ ...owned, VESPID_AGENT_DOCKER_CPUS: "1" });
      expect(await step("echo small")).toEqual({
        ...{ status: "succeeded", error: undefined },
        output: {
          ...{ backend, exitCode: 0, timedOut: false, stdout: "small\n", stderr: "" },
          ...{ stdoutTruncated: false, stderrTruncated: false },
        },
      });
      expect(await step("x=$(head -c 67108864 /dev/zero | tr '\\0' x)")).toMatchObject({
        ...{ status: "failed", error: "NODE_EXECUTION_FAILED", output: { limit: "memory" } },
      });
      expect(
        await step("i=0; while [ $i -lt 60 ]; do sleep 9 & i=$((i+1)); done 2>/dev/null; echo survived"),
      ).toMatchObject({
        output: { limit: "pids" },
      });
      expect(await step("head -c 4000000 /dev/zero > full")).toMatchObject({
        ...{ status: "failed", error: "NODE_EXECUTION_FAILED", output: { limit: "disk" } },
      });
      expect(await step("head -c 5000 /dev/zero | tr '\\0' x")).toMatchObject({
        status: "succeeded",
        output: {
          ...{ limit: "output", stdoutTruncated: true },
          stdout: `${"x".repeat(300)}\n[output limit of 300 characters reached: the rest was discarded]\n`,
        },
      });
      const sleep = uniqueSleep();
      expect(await step(`setsid ${sleep} & ${sleep}`, { sandbox: { timeoutMs: 5000 } })).toMatchObject({
        ...{ status: "failed", error: "NODE_EXECUTION_TIMEOUT", output: { limit: "time", timedOut: true } },
      });
      expect([running(sleep), cgroups()]).toEqual([[], []]);
      // A twentieth of a processor is less than a busy machine leaves to it.
      const slow = await connectedSteps({ ...owned, VESPID_AGENT_DOCKER_CPUS: "0.05" });
      expect(
        await slow.step("i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done", { timeoutMs: 600_000 }),
      ).toMatchObject({
        ...{ status: "succeeded", output: { limit: "cpu", exitCode: 0 } },
      });
    },
    400_000,
  );
});

describe("a shell step on a backend that enforces no limit", () => {
  it.skipIf(lacks("root") || lacks("podman"))(
    "SBX-02 is refused by podman without root, which would accept limits that have no effect",
    async () => {
      putOnPath("podman", await openRootlessPodman());
      const { step } = await connectedSteps({
        ...{ HOLDFAST_EXECUTION_BACKEND: "podman", VESPID_AGENT_DOCKER_IMAGE: TEST_IMAGE },
        HOLDFAST_EXECUTION_ALLOW_UNENFORCED: "",
      });
      const { status, error } = await step("true");
      expect([status, error]).toEqual([
        "failed",
        expect.stringMatching(
          /memory \(podman without root, cgroup v\d cannot limit memory on this host; run the agent as root.*HOLDFAST_EXECUTION_ALLOW_UNENFORCED=memory,pids,cpu and/,
        ),
      ]);
    },
  );

  it("SBX-02 is refused with what to change, and runs when the owner of the host accepts that", async () => {
    const trace = join(scratchDirectory(), "trace");
    const script = `echo ran >> ${trace}`;
    const refused = await connectedSteps({ HOLDFAST_EXECUTION_ALLOW_UNENFORCED: "" });
    const { status, error } = await refused.step(script);
    expect([status, error]).toEqual([
      "failed",
      expect.stringMatching(
        /the backend host cannot enforce these limits on this host: memory \(.*HOLDFAST_EXECUTION_ALLOW_UNENFORCED=memory,pids,disk,cpu and restart the agent/,
      ),
    ]);
    expect(existsSync(trace)).toBe(false);
    const partly = await connectedSteps({ HOLDFAST_EXECUTION_ALLOW_UNENFORCED: "memory,pids,cpu" });
    expect((await partly.step(script)).error).toMatch(/HOLDFAST_EXECUTION_ALLOW_UNENFORCED=disk/);
    expect(existsSync(trace)).toBe(false);
    const accepted = await connectedSteps({ HOLDFAST_EXECUTION_ALLOW_UNENFORCED: "all" });
    expect(await accepted.step(script)).toMatchObject({ status: "succeeded" });
    expect(existsSync(trace)).toBe(true);
  });
});
