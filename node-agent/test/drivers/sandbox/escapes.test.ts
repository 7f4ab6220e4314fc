// Nothing gets out of a sandbox. Each attempt succeeds on the host first, so that it is known to be one.

import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../../scripts/facilities.mjs";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import { openTestPodman, startTestDocker } from "../../../../testkit/containers/engines.ts";
import { TEST_IMAGE } from "../../../../testkit/containers/image.ts";
import { bubblewrapDriver } from "../../../src/drivers/sandbox/bubblewrap/bubblewrap.ts";
import { dockerDriver } from "../../../src/drivers/sandbox/docker.ts";
import type { SandboxDriver } from "../../../src/drivers/sandbox/driver.ts";
import { hostDriver } from "../../../src/drivers/sandbox/host.ts";
import { podmanDriver } from "../../../src/drivers/sandbox/podman.ts";
import { roomy, run } from "./bench.ts";
import { escapeScript, type Outcome, outcomesOf } from "./escape-script.ts";
import { escapes } from "./escapes.ts";
import { type Planted, plant } from "./planted.ts";

const PIDS = 64;
const owner = "agent";

const sandboxes: [name: string, open: (root: string) => Promise<SandboxDriver>][] = [
  ["bubblewrap", async () => bubblewrapDriver({ owner })],
  [
    "docker",
    async (root) => dockerDriver({ owner, root, command: (await startTestDocker()).command, environment: {} }),
  ],
  [
    "podman",
    async (root) => podmanDriver({ owner, root, command: (await openTestPodman()).command, environment: {} }),
  ],
];

const needsHost = ["root", "bubblewrap", "docker", "podman", "runc", "catatonit", "busybox"] as const;

describe.skipIf(needsHost.some((name) => lacks(name)))("attempts to escape", () => {
  let root: string;
  let planted: Planted;
  let onHost: Record<string, Outcome>;

  async function attemptAll(driver: SandboxDriver, before = ""): Promise<Record<string, Outcome>> {
    const bench = { driver, withinMs: 250_000, leftovers: () => [] };
    const script = `${before}${escapeScript(planted)}`;
    const { stdout, stderr } = await run(bench, { script, image: TEST_IMAGE, limits: { ...roomy, pids: PIDS } });
    expect(stderr).toBe("");
    return outcomesOf(stdout);
  }

  beforeAll(async () => {
    root = join(scratchDirectory(), "work");
    planted = await plant({ workdirs: root, pids: PIDS });
    // The driver of the host leaves nothing open: the descriptor that is found is the test's own.
    onHost = await attemptAll(hostDriver({ root }), `exec 9<${planted.file}\n`);
  });

  it("SBX-01 are thirty at least, and each succeeds on the host itself", () => {
    expect(escapes.length).toBeGreaterThanOrEqual(30);
    expect(onHost).toEqual(Object.fromEntries(escapes.map(({ name }) => [name, "escaped"])));
  });

  it.for(sandboxes)("SBX-01 fail without exception in %s", async ([, open]) => {
    expect(await attemptAll(await open(root))).toEqual(
      Object.fromEntries(escapes.map(({ name }) => [name, "held"])),
    );
  });
});
