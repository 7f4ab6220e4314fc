// Logs, traces and evidence bundles of a whole installation, through the command line.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import type { LogLine, LogReplica } from "@holdfast/contracts/endpoints/logs";
import type { Trace } from "@holdfast/contracts/endpoints/trace";
import { packTar, unpackTar } from "@holdfast/kit/tar";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { until } from "../../../testkit/processes/holdfast.ts";
import { findLeaks } from "../../../testkit/secrets-scan.ts";
import { type FirstNode, openFirstNode } from "../support/first-node.ts";

let first: FirstNode;
let name: string;
beforeAll(async () => {
  first = await openFirstNode();
  ({ name } = first.node);
});
afterAll(() => first.cleanUp());

type Found = { items: LogLine[]; replicas: LogReplica[] };

describe("an installation", () => {
  it("DASH-08 finds the log line behind a failure, in whichever process it is", async () => {
    const { stderr, code } = await first.run(["task", "show", "01a1e13c-bc3d-71c5-9b58-aada3c2346d4", "--json"]);
    expect(code).toBe(1);
    const { error } = JSON.parse(stderr) as { error: { correlation_id: string } };
    const id = error.correlation_id;
    const found = await first.json<Found>(["logs", "--correlation", id]);
    expect(found.items).toMatchObject([
      { process: "api", message: "request", correlation_id: id, fields: { status: 404 } },
    ]);
    expect(found.replicas.map(({ process, state }) => `${process} ${state}`).toSorted()).toEqual([
      "api answered",
      "gateway answered",
      "worker answered",
    ]);
    const trace = await first.json<Trace>(["trace", id]);
    expect(trace.found_as).toEqual(["log"]);
    const { stdout } = await first.run(["logs", "--correlation", id]);
    expect(stdout).toMatch(/^TIME +PROCESS +LEVEL +MESSAGE +FIELDS\n/);
    expect((await first.run(["logs", "--correlation", "unknown-id-1"])).stdout).toContain("No line is kept");
  });

  it("DASH-08 has lines of the gateway", async () => {
    const { gateway_url: url } = first.installation.upFile();
    const id = "gateway-line-0001";
    await fetch(`${url}/nothing-here`, { headers: { "x-correlation-id": id } });
    const found = await first.json<Found>(["logs", "--correlation", id, "--process", "gateway"]);
    expect(found.items).toMatchObject([{ process: "gateway", correlation_id: id, fields: { status: 404 } }]);
  });

  it("DASH-08 keeps lines over a restart of the process that wrote them", async () => {
    const before = await first.json<Found>(["logs", "--correlation", "gateway-line-0001"]);
    const [gateway] = before.replicas.filter(({ process }) => process === "gateway");
    const { children } = first.installation.upFile() as unknown as { children: Record<string, { pid: number }> };
    process.kill(children["gateway"]?.pid ?? 0, "SIGKILL");
    const again = async () => {
      const { items, replicas } = await first.json<Found>(["logs", "--correlation", "gateway-line-0001"]);
      const answered = replicas.filter(({ process: kind, state }) => kind === "gateway" && state === "answered");
      return { items, restarted: answered.some(({ replica }) => replica !== gateway?.replica) };
    };
    await until(async () => (await again()).restarted);
    expect((await again()).items).toMatchObject([{ process: "gateway", correlation_id: "gateway-line-0001" }]);
  });

  it("DASH-03 AGENT-10 creates a bundle that is verified offline, replayed, and has no secret of the installation", async () => {
    const directory = scratchDirectory();
    const file = join(directory, "bundle.tar.gz");
    const kid = (await first.run(["evidence", "key"])).stdout.trim();
    await first.run(["node", "evidence", name, "--ssh", "failed"]);
    const made = await first.run(["evidence", "create", name, "-o", file]);
    expect(made).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`Verify it: holdfast evidence verify ${file}`),
    });
    expect((await first.run(["evidence", "create", name, "-o", file])).code).toBe(2);

    // Offline: no server is named, and the key was pinned.
    const offline = { HOLDFAST_DATA_DIR: join(directory, "nowhere") };
    const verified = await first.installation.run(["evidence", "verify", file, "--key", kid], offline);
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(`Valid: ${file}`) });
    const replayed = await first.installation.run(["evidence", "replay", file, "--json"], offline);
    expect(JSON.parse(replayed.stdout)).toMatchObject({ same: true });

    const files = unpackTar(gunzipSync(readFileSync(file)));
    const changed = join(directory, "changed.tar.gz");
    const other = files.map((one) => (one.path === "tasks.json" ? { ...one, content: Buffer.from("[]") } : one));
    writeFileSync(changed, gzipSync(packTar(other, new Date())));
    const refused = await first.installation.run(["evidence", "verify", changed, "--key", kid], offline);
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining("tasks.json was changed.") });

    execFileSync("tar", ["-xzf", file], { cwd: directory });
    expect(readdirSync(join(directory, "logs"))).toContain("replicas.json");
    expect(readFileSync(join(directory, "settings.json"), "utf8")).toContain('"HOLDFAST_KEK_BASE64": "[set]"');
    const secret = (path: string) => readFileSync(join(first.installation.dataDir, path), "utf8").trim();
    const secrets = { kek: secret("kek"), operator: secret("operator-token"), dispatch: secret("dispatch-token") };
    expect(findLeaks(files, secrets)).toEqual([]);
    const leaky = [...files, { path: "x", content: Buffer.from(`a ${secrets.kek} b`) }];
    expect(findLeaks(leaky, secrets)).toEqual([{ secret: "kek", path: "x" }]);
  });
});
