// Operations on an invented host, which is a map of what exists there, crashed after every step.

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import {
  type CrashTest,
  crashAfterEveryStep,
  failAtEveryStep,
  repeatEveryPhase,
} from "../../testkit/phase-crash/every-step.ts";
import { filePhaseStore, PhaseRecordUnusable, recordedOperations } from "./file-store.ts";
import { type Operation, type Phase, type PhaseStore, runPhases, undoPhases } from "./phases.ts";

type Host = { existing: Map<string, string>; ids: number };

const volume: Phase<Host, { id: string }> = {
  name: "creating_volume",
  plan: (host) => ({ id: `volume-${host.ids++}` }),
  act: async ({ existing }, { id }) => void existing.set(id, "volume"),
  undo: async ({ existing }, { id }) => void existing.delete(id),
};
const network: Phase<Host, null> = {
  name: "creating_network",
  act: async ({ existing }) => void existing.set("network", "network"),
  undo: async ({ existing }) => void existing.delete("network"),
};
const check: Phase<Host> = {
  name: "checking",
  act: async ({ existing }) => {
    if (!existing.has("network")) throw new Error("there is no network");
  },
};
const machine: Phase<Host, { pid: string }> = {
  ...{ name: "starting_machine", plan: (host: Host) => ({ pid: `process-${host.ids++}` }) },
  act: async ({ existing }, { pid }) => void existing.set(pid, "machine"),
  undo: async ({ existing }, { pid }) => void existing.delete(pid),
};
const phases = [volume, network, check, machine];

function inMemory(): PhaseStore {
  let text: string | undefined;
  return {
    read: () => (text === undefined ? undefined : JSON.parse(text)),
    write: (record) => {
      text = JSON.stringify(record);
    },
    remove: () => {
      text = undefined;
    },
  };
}

function testOf(of: Operation<Host>["phases"]): CrashTest<Host> {
  return {
    prepare: async () => ({ phases: of, context: { existing: new Map(), ids: 0 }, store: inMemory() }),
    expectMade: ({ context, store }, step) => {
      expect([...context.existing.values()].sort(), step).toEqual(["machine", "network", "volume"]);
      expect(store.read()?.state, step).toBe("made");
    },
    expectNothing: ({ context, store }, step) => {
      expect([...context.existing], step).toEqual([]);
      expect(store.read(), step).toBeUndefined();
    },
  };
}
const test = testOf(phases);
// biome-ignore lint/suspicious/noExplicitAny: the plan of any phase
const withPhase = (changed: Phase<Host, any>) =>
  testOf(phases.map((one) => (one.name === changed.name ? changed : one)));

function scratch(): string {
  const stateDir = mkdtempSync(join(tmpdir(), "holdfast-phases-"));
  atEnd(() => rmSync(stateDir, { recursive: true, force: true }));
  return stateDir;
}

describe("an operation of phases", () => {
  it("is finished or undone completely after a crash at every step, also when the undo crashes", async () => {
    const steps = await crashAfterEveryStep(test);
    expect(steps).toEqual([
      ...["plan", "act"].flatMap((what) => [
        `before ${what} of creating_volume`,
        `after ${what} of creating_volume`,
      ]),
      ...["creating_network", "checking"].flatMap((name) => [`before act of ${name}`, `after act of ${name}`]),
      ...["plan", "act"].flatMap((what) => [
        `before ${what} of starting_machine`,
        `after ${what} of starting_machine`,
      ]),
    ]);
  });

  it("may have every phase repeated", () => expect(repeatEveryPhase(test)).resolves.toBeUndefined());

  it("undoes everything when any phase fails", () => expect(failAtEveryStep(test)).resolves.toBeUndefined());

  it("stays complete when a later run of it fails", async () => {
    const operation = await test.prepare();
    await runPhases(operation);
    operation.context.existing.delete("network");
    const breaking = { ...operation, phases: [check, ...phases] };
    await expect(runPhases(breaking)).rejects.toThrow("there is no network");
    expect(operation.store.read()?.state).toBe("made");
    expect(operation.context.existing.size).toBe(2);
    await runPhases(operation);
    test.expectMade(operation, "repaired");
  });

  it("keeps what cannot be undone on record, and undoes it later", async () => {
    const operation = await test.prepare();
    let stuck = true;
    const stubborn = phases.map((one) =>
      one !== network
        ? one
        : {
            ...network,
            undo: async (host: Host) => {
              if (stuck) throw new Error("in use");
              await network.undo?.(host, null);
            },
          },
    ) as Operation<Host>["phases"];
    await runPhases({ ...operation, phases: stubborn });
    await expect(undoPhases({ ...operation, phases: stubborn })).rejects.toThrow("in use");
    expect(operation.store.read()).toMatchObject({
      state: "undoing",
      phases: [{ name: "creating_volume" }, { name: "creating_network" }],
    });
    // It is not finished, because part of it is gone: the rest is undone before it is made anew.
    await expect(runPhases({ ...operation, phases: stubborn })).rejects.toThrow("in use");
    stuck = false;
    await runPhases({ ...operation, phases: stubborn });
    test.expectMade(operation, "made anew");
  });

  it("is not taken for complete any more from the moment its undo begins", async () => {
    const operation = await test.prepare();
    await runPhases(operation);
    const seen: unknown[] = [];
    const watching = { ...machine, undo: async () => void seen.push(operation.store.read()?.state) };
    await undoPhases({ ...operation, phases: [volume, network, watching] });
    expect(seen).toEqual(["undoing"]);
  });

  it("is not forgotten when a phase of another version is on record", async () => {
    const operation = await test.prepare();
    await runPhases(operation);
    await expect(undoPhases({ ...operation, phases: [volume, network] })).rejects.toThrow("starting_machine");
    expect(operation.store.read()?.phases).toHaveLength(3);
    expect(operation.context.existing.size).toBe(3);
  });

  it("can be stopped before any phase, and is undone", async () => {
    for (const stopAt of [...phases.map(({ name }) => name), "recording_made"]) {
      const operation = await test.prepare();
      const enter = (phase: string) => {
        if (phase === stopAt) throw new Error("stopped");
      };
      await expect(runPhases({ ...operation, enter }), stopAt).rejects.toThrow("stopped");
      test.expectNothing(operation, stopAt);
    }
  });
});

describe("the crash kit", () => {
  it.for([
    ["makes something without an undo", { ...network, undo: undefined }],
    ["decides what it makes only when it acts", { ...volume, plan: () => ({ id: "" }), act: makesAnyId }],
    ["cannot be repeated", { ...network, act: failsIfThere }],
    ["undoes nothing", { ...machine, undo: async () => {} }],
    ["cannot undo twice", { ...machine, undo: failsIfGone }],
  ] as const)("finds an operation that %s", async ([, phase]) => {
    const broken = withPhase(phase as never);
    const findings = [crashAfterEveryStep(broken), repeatEveryPhase(broken), failAtEveryStep(broken)];
    const results = await Promise.allSettled(findings);
    expect(results.map(({ status }) => status)).toContain("rejected");
  });
});

async function makesAnyId({ existing, ids }: Host) {
  existing.set(`volume-${ids}`, "volume");
}
async function failsIfThere({ existing }: Host) {
  if (existing.has("network")) throw new Error("File exists");
  existing.set("network", "network");
}
async function failsIfGone({ existing }: Host, { pid }: { pid: string }) {
  if (!existing.delete(pid)) throw new Error("No such process");
}

describe("phase records in files", () => {
  it("survive the process, for the agent alone, and are gone after the undo", async () => {
    const stateDir = scratch();
    const context: Host = { existing: new Map(), ids: 0 };
    await runPhases({ phases: phases as never, context, store: filePhaseStore(stateDir, "task-1") });
    expect(recordedOperations(stateDir)).toEqual(["task-1"]);
    const path = join(stateDir, "phases/task-1.json");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ state: "made" });
    await undoPhases({ phases: phases as never, context, store: filePhaseStore(stateDir, "task-1") });
    expect(context.existing.size).toBe(0);
    expect(recordedOperations(stateDir)).toEqual([]);
  });

  it("are never taken for none when they cannot be read", () => {
    const stateDir = scratch();
    filePhaseStore(stateDir, "a").write({ state: "making", phases: [] });
    writeFileSync(join(stateDir, "phases/a.json"), '{"state":');
    expect(() => filePhaseStore(stateDir, "a").read()).toThrow(PhaseRecordUnusable);
  });

  it.for(["", "../users", "a/b", "a.b", "x".repeat(129)])("are never named %j", (id) => {
    expect(() => filePhaseStore(scratch(), id)).toThrow("cannot name");
  });
});
