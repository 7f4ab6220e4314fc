// docker and podman keep the contract of sandboxes, with real engines and every limit, and leave nothing behind.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { enforcedLimits } from "@holdfast/contracts/execution/limits";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../../scripts/facilities.mjs";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import {
  loopsBelow,
  mountsBelow,
  openTestPodman,
  startTestDocker,
  type TestEngine,
} from "../../../../testkit/containers/engines.ts";
import { TEST_IMAGE } from "../../../../testkit/containers/image.ts";
import { atEnd } from "../../../../testkit/lifetime/at-end.ts";
import { type ContainerOptions, containerPoints } from "../../../src/drivers/sandbox/container/driver.ts";
import { dockerDriver } from "../../../src/drivers/sandbox/docker.ts";
import { runTag, type SandboxDriver } from "../../../src/drivers/sandbox/driver.ts";
import { podmanDriver } from "../../../src/drivers/sandbox/podman.ts";
import { holdCreation } from "../../support/held-creation.ts";
import { allCommands, type Bench, ended, run, running, start, uniqueSleep, until } from "./bench.ts";
import { contractOf } from "./contract.ts";

const program = fileURLToPath(new URL("../../support/container-process.ts", import.meta.url));

const engines: {
  name: "docker" | "podman";
  begin(): Promise<TestEngine>;
  open(o: ContainerOptions): SandboxDriver;
}[] = [
  { name: "docker", begin: startTestDocker, open: dockerDriver },
  { name: "podman", begin: openTestPodman, open: podmanDriver },
];

const needed = ["root", "docker", "podman", "runc", "catatonit", "busybox"] as const;

describe.skipIf(needed.some((name) => lacks(name))).for(engines)(
  "the sandbox driver of $name",
  ({ name, begin, open }) => {
    let engine: TestEngine;
    let options: ContainerOptions;
    let bench: Bench;
    const containers = async () => (await engine.run("ps", "-a", "-q")).split("\n").filter(Boolean);

    beforeAll(async () => {
      engine = await begin();
      const root = join(scratchDirectory(), "work");
      options = { owner: "agent", root, command: engine.command, environment: {}, image: TEST_IMAGE };
      bench = {
        ...{ driver: open(options), withinMs: 200_000, order: { image: TEST_IMAGE } },
        leftovers: async () => [
          ...(existsSync(root) ? readdirSync(root) : []),
          ...mountsBelow(root),
          ...loopsBelow(root),
          ...(await containers()),
        ],
      };
    });

    it.for(contractOf({ isolation: true, limits: enforcedLimits }))("SBX-01 $name", ({ check }) =>
      expect(check(bench)).resolves.toBeUndefined(),
    );

    it("SBX-01 keeps script, secret and environment from everybody who may ask the engine", async () => {
      const [sleep, id, hidden] = [uniqueSleep(), uuidv7(), `hidden-${uuidv7()}`];
      const script = `: ${hidden}; ${sleep}`;
      const { handle } = start(bench, { id, script, secret: hidden, env: { VALUE: hidden } });
      await until(bench, () => running(sleep).length > 0, "the script");
      const described = await engine.run("inspect", runTag("agent", id));
      handle.kill();
      await ended(bench, handle);
      expect(described).toContain(id);
      expect(described).not.toContain(hidden);
    });

    it("EXEC-02 removes what an agent that was killed left, and nothing of another agent", async () => {
      const [sleep, others] = [uniqueSleep(), uniqueSleep()];
      const other = {
        ...bench,
        driver: open({ ...options, owner: "other", root: join(scratchDirectory(), "work") }),
      };
      const { handle } = start(other, { script: others });
      const order = { script: `setsid ${sleep} & ${sleep}`, image: TEST_IMAGE, engine: name, options };
      const agent = spawn(process.execPath, [program, JSON.stringify(order)], { stdio: "ignore" });
      atEnd(() => void agent.kill("SIGKILL"));
      await until(bench, () => running(sleep).length === 2 && running(others).length === 1, "the scripts");
      agent.kill("SIGKILL");
      await once(agent, "exit");
      expect(await bench.driver.recover()).toBe(1);
      expect([running(sleep), running(others).length, (await containers()).length]).toEqual([[], 1, 1]);
      handle.kill();
      await ended(other, handle);
      expect([await bench.driver.recover(), await bench.leftovers()]).toEqual([0, []]);
    });

    // While the engine creates the container, which may take longer than its client lives.
    const inBetween = [20, 60, 120, 200, 300].map((ms) => `${ms} ms after started`);
    it.for([...containerPoints, "printed", ...inBetween])(
      "EXEC-02 leaves nothing after the next start of an agent that was killed: %s",
      async (dieAt) => {
        const [sleep, owner] = [uniqueSleep(), uuidv7()];
        const place = { ...options, owner, root: join(scratchDirectory(), "work") };
        const endless = dieAt !== "ended" && dieAt !== "removed";
        const script = `${sleep} & setsid ${sleep} & echo printed; ${endless ? "wait" : "exit"}`;
        const order = { script, image: TEST_IMAGE, engine: name, options: place, dieAt };
        const agent = spawn(process.execPath, [program, JSON.stringify(order)], { stdio: "ignore" });
        atEnd(() => void agent.kill("SIGKILL"));
        const [, signal] = await once(agent, "exit");
        expect(signal).toBe("SIGKILL");
        const next = open(place);
        expect(await next.recover()).toBe(dieAt === "removed" ? 0 : 1);
        const left = () => [
          ...readdirSync(place.root),
          ...mountsBelow(place.root),
          ...loopsBelow(place.root),
          ...running(sleep),
        ];
        expect([left(), await containers(), clientsOf(owner)]).toEqual([[], [], []]);
        expect(await next.recover()).toBe(0);
      },
    );

    if (name === "docker")
      it("EXEC-02 leaves no container that the engine was still creating when the agent was killed", async () => {
        const [owner, root] = [uuidv7(), join(scratchDirectory(), "work")];
        const socket = join(scratchDirectory(), "sock");
        const daemon = engine.command.at(-1)?.replace("unix://", "") ?? "";
        const { asked, created } = await holdCreation({ daemon, socket });
        const command = ["/usr/bin/docker", "-H", `unix://${socket}`] as const;
        const place = { ...options, owner, root, command };
        const order = { script: "true", image: TEST_IMAGE, engine: name, options: place };
        const agent = spawn(process.execPath, [program, JSON.stringify(order)], { stdio: "ignore" });
        atEnd(() => void agent.kill("SIGKILL"));
        await asked;
        agent.kill("SIGKILL");
        await once(agent, "exit");
        expect(await open(place).recover()).toBe(1);
        await created;
        expect([await containers(), readdirSync(root), mountsBelow(root), clientsOf(owner)]).toEqual([
          [],
          [],
          [],
          [],
        ]);
      });

    it("SBX-04 says how to get an image that is missing", async () => {
      const message = new RegExp(`example.com/none:1.* run: ${name} pull example.com/none:1`);
      await expect(run(bench, { script: "true", image: "example.com/none:1" })).rejects.toThrow(message);
      const { problem } = await open({ ...options, image: "example.com/none:1" }).check();
      expect(problem?.remedy).toBe(`run: ${name} pull example.com/none:1`);
      expect(await bench.leftovers()).toEqual([]);
    });

    it("SBX-04 says what is wrong with an engine that is not there", async () => {
      const missing = open({ ...options, command: ["/nonexistent/engine"] });
      expect((await missing.check()).problem?.what).toMatch(/not installed/);
      expect(await missing.recover()).toBe(0);
    });

    it("SBX-03 refuses a name that is no variable of a shell", async () => {
      await expect(run(bench, { script: "true", env: { "a;b": "c" } })).rejects.toThrow(/"a;b"/);
    });
  },
);

/** Processes of the host whose arguments name the agent: clients and helpers of the engine. */
const clientsOf = (owner: string) =>
  allCommands()
    .filter(([, line]) => line.includes(owner))
    .map(([, line]) => line);

describe.skipIf(lacks("docker"))("a docker daemon that does not respond", () => {
  it("SBX-04 is reported with what to do", async () => {
    const root = join(scratchDirectory(), "work");
    const command = ["/usr/bin/docker", "-H", `unix://${root}/none`] as const;
    const driver = dockerDriver({ owner: "agent", root, command, environment: {} });
    expect((await driver.check()).problem).toEqual({
      what: "the docker daemon does not respond",
      remedy: "start it: systemctl start docker",
    });
    expect(await driver.recover()).toBe(0);
  });
});
