// Base images are fetched from a real server on loopback that breaks off, lies and changes. Whatever happens, only a verified file
// gets the name of an image, and nothing else is left.

import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { lacksVms } from "../../../scripts/facilities.mjs";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { qemuDriver } from "../../src/drivers/qemu/qemu-driver.ts";
import { createImageFetches } from "../../src/vms/image-fetch/image-fetches.ts";
import { createImages } from "../../src/vms/images.ts";
import { type ImageServer, startImageServer } from "../support/image-server.ts";
import { startVmHost, vmPlace } from "../support/vm-host.ts";

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** A usable image with these bytes in it. */
function makeImage(bytes: number): Buffer {
  const directory = scratchDirectory();
  const raw = join(directory, "raw");
  writeFileSync(raw, randomBytes(bytes));
  execFileSync("qemu-img", ["convert", "-q", "-f", "raw", "-O", "qcow2", raw, join(directory, "image")]);
  return readFileSync(join(directory, "image"));
}

type Options = { sources?: string[]; room?: number; references?: number; now?: () => number };

describe.skipIf(lacksVms())("fetching an image", () => {
  let good: Buffer;
  let changed: Buffer;
  beforeAll(() => {
    good = makeImage(3 * 1024 ** 2);
    changed = makeImage(3 * 1024 ** 2);
  });

  const setUp = async (options: Options = {}) => {
    const root = scratchDirectory();
    const [directory, stateDir] = [join(root, "base"), join(root, "state")];
    for (const path of [directory, stateDir]) mkdirSync(path);
    const server = await startImageServer(good);
    const open = () => {
      const images = createImages({ directory, stateDir, driver: qemuDriver, onChange: () => undefined });
      const fetches = createImageFetches({
        ...{ directory, stateDir, driver: qemuDriver, images, onChange: () => undefined },
        sources: options.sources ?? [`${server.origin}/base/`],
        references: () => options.references ?? 0,
        pause: async (_ms, signal) => signal.throwIfAborted(),
        room: () => options.room ?? 1024 ** 3,
        now: options.now ?? Date.now,
      });
      return { images, fetches };
    };
    const progress: { received_bytes: number; total_bytes: number | null }[] = [];
    const phases: string[] = [];
    const taskFor = (changes: { url?: string; id?: string; sha256?: string; signal?: AbortSignal } = {}) => ({
      image: { id: changes.id ?? "debian", sha256: changes.sha256 ?? sha256(good) },
      url: changes.url ?? server.url,
      enter: (phase: string) => void phases.push(phase),
      progress: (one: (typeof progress)[number]) => {
        progress.push(one);
        server.received(one.received_bytes);
      },
      signal: changes.signal ?? new AbortController().signal,
    });
    const agent = open();
    return {
      ...{ ...agent, open, server, taskFor, progress, phases, directory, stateDir },
      files: () => readdirSync(directory).sort(),
      records: () => {
        try {
          return readdirSync(join(stateDir, "phases"));
        } catch {
          return [];
        }
      },
    };
  };
  type Setting = Awaited<ReturnType<typeof setUp>>;

  const failureOf = (fetching: Promise<unknown>) =>
    fetching.then(
      () => undefined,
      (error: { code?: string; message: string }) => ({ code: error.code, message: error.message }),
    );
  const expectNothing = ({ files, records }: Setting) => expect([files(), records()]).toEqual([[], []]);
  const statuses = (server: ImageServer) => server.requests.map(({ status }) => status);

  it("VM-07 puts a verified file in place, with progress, and reports it as fetched", async () => {
    const one = await setUp();
    expect(await one.fetches.fetch(one.taskFor())).toEqual({
      ...{ image_id: "debian", sha256: sha256(good), file_bytes: good.length },
      ...{ fetched: true, resumed_from_bytes: 0 },
    });
    expect([one.files(), one.records()]).toEqual([["debian.qcow2"], []]);
    expect(one.phases).toEqual(["checking", "downloading", "verifying", "placing"]);
    expect(one.progress.at(-1)).toEqual({ received_bytes: good.length, total_bytes: good.length });
    await one.images.refresh();
    const { isFetched } = one.fetches;
    expect(one.images.list({ references: () => 0, isFetched })).toMatchObject([
      { id: "debian", sha256: sha256(good), fetched: true, problem: null },
    ]);
    expect(await one.fetches.fetch(one.taskFor())).toMatchObject({ fetched: false });
    expect(one.server.requests).toHaveLength(1);
  });

  it("VM-07 goes on where a broken connection stopped, also after a restart of the agent", async () => {
    const one = await setUp();
    one.server.breaks = [100_000, 600_000];
    const stop = new AbortController();
    const task = one.taskFor({ signal: stop.signal });
    const interrupted = one.fetches.fetch({
      ...task,
      progress: (received) => {
        task.progress(received);
        if (received.received_bytes === 600_000) stop.abort(new Error("the agent stops"));
      },
    });
    expect((await failureOf(interrupted))?.message).toContain("the agent stops");
    expect(one.files()).toEqual([`.fetching-${sha256(good)}`]);
    expect(one.records()).toHaveLength(1);
    const later = one.open();
    const fetched = await later.fetches.fetch(one.taskFor());
    expect(fetched).toMatchObject({ fetched: true, resumed_from_bytes: 600_000 });
    expect(statuses(one.server)).toEqual([200, 206, 206]);
    expect(one.server.requests[1]).toMatchObject({ range: "bytes=100000-", ifRange: '"1"' });
    expect(sha256(readFileSync(join(one.directory, "debian.qcow2")))).toBe(sha256(good));
    expect([one.files(), one.records()]).toEqual([["debian.qcow2"], []]);
  });

  it.for([
    ["says so", '"2"', [200, 200]],
    ["says nothing of it", undefined, [200, 206, 200]],
  ] as const)("VM-07 begins again when the file changes and the server %s", async ([, etag, expected]) => {
    const one = await setUp();
    one.server.file = changed;
    one.server.etag = etag === undefined ? undefined : '"1"';
    one.server.breaks = [1_000_000];
    one.server.instead = () => {
      // From the second request on the server has the file of the catalogue.
      if (one.server.requests.length === 1) {
        one.server.file = good;
        one.server.etag = etag;
      }
      return false;
    };
    expect(await one.fetches.fetch(one.taskFor())).toMatchObject({ fetched: true });
    expect(statuses(one.server)).toEqual(expected);
    expect(sha256(readFileSync(join(one.directory, "debian.qcow2")))).toBe(sha256(good));
  });

  it("VM-07 refuses another digest, and leaves nothing", async () => {
    const one = await setUp();
    one.server.file = changed;
    expect(await failureOf(one.fetches.fetch(one.taskFor()))).toEqual({
      ...{ code: "vm_image_digest_wrong" },
      message: `${one.server.url} has SHA-256 ${sha256(changed)}; ${sha256(good)} was expected.`,
    });
    expectNothing(one);
  });

  it("VM-07 refuses what is no independent qcow2 image, although its digest is right", async () => {
    const one = await setUp();
    const text = Buffer.from("This is no image.");
    one.server.file = text;
    const failure = await failureOf(one.fetches.fetch(one.taskFor({ sha256: sha256(text) })));
    expect(failure?.code).toBe("vm_image_unusable");
    expectNothing(one);
  });

  it("VM-07 checks the room first, and names both sizes", async () => {
    const one = await setUp({ room: 2 * 1024 ** 2 });
    const failure = await failureOf(one.fetches.fetch(one.taskFor()));
    expect(failure).toEqual({
      code: "vm_image_disk_full",
      message: expect.stringMatching(/^\d MiB are still to be fetched, and 2 MiB are free[.]$/),
    });
    expectNothing(one);
  });

  it("SEC-04 VM-07 connects only to addresses that the owner allows, also after a redirect", async () => {
    const forbidden = await setUp({ sources: ["https://images.example.com/"] });
    expect(await failureOf(forbidden.fetches.fetch(forbidden.taskFor()))).toMatchObject({
      code: "vm_image_source_refused",
      message: expect.stringContaining("HOLDFAST_VM_IMAGE_SOURCES"),
    });
    expect(forbidden.server.requests).toEqual([]);
    expectNothing(forbidden);

    const one = await setUp();
    const other = await startImageServer(good);
    one.server.instead = (_request, response) => {
      response.writeHead(302, { location: other.url }).end();
      return true;
    };
    expect((await failureOf(one.fetches.fetch(one.taskFor())))?.code).toBe("vm_image_source_refused");
    expect(other.requests).toEqual([]);
    expectNothing(one);
    one.server.instead = (request, response) => {
      if (request.url === "/base/elsewhere") return false;
      response.writeHead(302, { location: "/base/elsewhere" }).end();
      return true;
    };
    expect(await one.fetches.fetch(one.taskFor())).toMatchObject({ fetched: true });
  });

  it("VM-07 keeps what it has while the server does not respond, and removes it when nobody asks for a day", async () => {
    let now = Date.now();
    const one = await setUp({ now: () => now });
    one.server.breaks = [1_000_000];
    one.server.instead = (_request, response) => {
      if (one.server.requests.length === 0) return false;
      response.writeHead(503).end();
      return true;
    };
    expect((await failureOf(one.fetches.fetch(one.taskFor())))?.code).toBe("vm_image_source_unreachable");
    const part = join(one.directory, `.fetching-${sha256(good)}`, "part");
    expect(readFileSync(part).equals(good.subarray(0, 1_000_000))).toBe(true);
    utimesSync(part, now / 1000, now / 1000);
    now += 23 * 3600_000;
    await one.fetches.removeAbandoned();
    expect(one.records()).toHaveLength(1);
    now += 2 * 3600_000;
    await one.fetches.removeAbandoned();
    expectNothing(one);
  });

  it("VM-07 names the status of a server that refuses", async () => {
    const one = await setUp();
    one.server.instead = (_request, response) => {
      response.writeHead(404).end();
      return true;
    };
    expect(await failureOf(one.fetches.fetch(one.taskFor()))).toEqual({
      code: "vm_image_source_failed",
      message: `${one.server.url}: the server responded with 404.`,
    });
    expectNothing(one);
  });

  it("VM-05 VM-07 never replaces or removes a file of somebody else", async () => {
    const one = await setUp();
    const path = join(one.directory, "debian.qcow2");
    writeFileSync(path, changed);
    expect((await failureOf(one.fetches.fetch(one.taskFor())))?.code).toBe("vm_image_not_replaced");
    await one.images.refresh();
    expect(one.fetches.remove({ id: "debian", sha256: sha256(changed) })).toMatchObject({ removed: false });
    expect(readFileSync(path).equals(changed)).toBe(true);
    expect(one.server.requests).toEqual([]);
  });

  it("VM-07 replaces an image that it fetched, and removes it, unless VMs run from it or it was changed", async () => {
    const options: Options = {};
    const one = await setUp(options);
    await one.fetches.fetch(one.taskFor());
    one.server.file = changed;
    const newer = one.taskFor({ sha256: sha256(changed) });
    options.references = 1;
    expect((await failureOf(one.fetches.fetch(newer)))?.code).toBe("vm_image_not_replaced");
    options.references = 0;
    expect(await one.fetches.fetch(newer)).toMatchObject({ fetched: true });
    options.references = 2;
    expect(one.fetches.remove(newer.image)).toMatchObject({
      removed: false,
      kept: expect.stringContaining("2 VMs"),
    });
    options.references = 0;
    const path = join(one.directory, "debian.qcow2");
    await one.images.refresh();
    writeFileSync(path, good);
    await one.images.refresh();
    expect(one.fetches.remove(newer.image)).toMatchObject({ removed: false });
    writeFileSync(path, changed);
    await one.images.refresh();
    expect(one.fetches.remove(newer.image)).toEqual({ image_id: "debian", removed: true, kept: null });
    expectNothing(one);
    expect(one.fetches.remove(newer.image)).toMatchObject({ removed: false, kept: "It is not on this host." });
  });

  it.for(["checking", "downloading", "half", "verifying", "placing"])(
    "VM-05 VM-07 is completed by the next task after kill -9 at %s, and nothing else is left",
    { timeout: 60_000 },
    async (at) => {
      const one = await setUp();
      const { image, url } = one.taskFor();
      const { directory, stateDir } = one;
      const wanted = { directory, stateDir, sources: [`${one.server.origin}/base/`], image, url, at };
      const program = fileURLToPath(new URL("../support/fetch-and-die.ts", import.meta.url));
      const child = spawn(process.execPath, [program, JSON.stringify(wanted)], { stdio: "ignore" });
      expect(await new Promise((resolve) => child.once("close", (_code, signal) => resolve(signal)))).toBe(
        "SIGKILL",
      );
      expect(one.files()).not.toContain("debian.qcow2");
      const { resumed_from_bytes } = await one.open().fetches.fetch(one.taskFor());
      expect(resumed_from_bytes > 0).toBe(["half", "verifying", "placing"].includes(at));
      expect([one.files(), one.records()]).toEqual([["debian.qcow2"], []]);
      expect(sha256(readFileSync(join(directory, "debian.qcow2")))).toBe(sha256(good));
    },
  );

  it("VM-07 works through the host of an agent, whose report has the image as fetched", async () => {
    const server = await startImageServer(good);
    const place = vmPlace({ imageSources: [`${server.origin}/base/`] });
    const { host } = await startVmHost(place);
    expect(host.report().image_sources).toEqual([`${server.origin}/base/`]);
    const image = { id: "fetched", sha256: sha256(good) };
    const task = { enter: () => undefined, progress: () => undefined, signal: new AbortController().signal };
    expect(await host.fetchImage({ ...task, image, url: server.url })).toMatchObject({ fetched: true });
    const listed = () => host.report().images.map(({ id, fetched }) => ({ id, fetched }));
    expect(listed()).toEqual([
      { id: "fetched", fetched: true },
      { id: "small", fetched: false },
    ]);
    expect(await host.removeImage(place.image)).toMatchObject({ removed: false });
    expect(await host.removeImage(image)).toMatchObject({ removed: true });
    expect(listed()).toEqual([{ id: "small", fetched: false }]);
  });
});
