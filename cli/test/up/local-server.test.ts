// Whom the commands of this machine believe: only a supervisor that lives gets the operator token.

import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { keepUpFile } from "../../src/up/up-file.ts";
import { aPerson } from "../support/command.ts";

const nobody = 65_534;
const othersCanRunIt = !lacks("root") && !lacks("openCheckout");

const person = aPerson();
const dataDir = join(person.home, "no-installation");
const upFile = join(dataDir, "up.json");
let stranger: Server;
let url: string;
let received: (string | undefined)[] = [];

beforeAll(async () => {
  stranger = createServer((request, response) => {
    received.push(request.headers.authorization);
    response.writeHead(502).end();
  }).listen(0, "127.0.0.1");
  await once(stranger, "listening");
  url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, "lock"), "");
  writeFileSync(join(dataDir, "operator-token"), "hfo_secret\n", { mode: 0o600 });
});
afterAll(() => stranger.close());
beforeEach(() => {
  received = [];
});

describe("the operator token", () => {
  it.for([
    ["whose pid nobody has", { pid: 2 ** 22 + 1, start_ticks: "1" }],
    ["whose pid somebody else has now", { pid: process.pid, start_ticks: "1" }],
  ] as const)("SEC-03 is not sent to the old port of a supervisor %s", async ([, supervisor]) => {
    keepUpFile(upFile, { embedded: true, agent: null }).change({ ready: true, api_url: url, supervisor });
    for (const args of [["token", "list"], ["admin", "link"], ["org", "list", "--local"], ["login"]]) {
      const { code, stderr } = await person.holdfast(args);
      expect(code, args.join(" ")).toBe(3);
      expect(stderr).toContain(`No Holdfast server is running on ${dataDir}`);
    }
    expect(received).toEqual([]);
  });

  it("SEC-03 is not sent to what an earlier boot of the machine recorded", async () => {
    const boot_id = "00000000-0000-0000-0000-000000000000";
    keepUpFile(upFile, { embedded: true, agent: null }).change({ ready: true, api_url: url, boot_id });
    expect((await person.holdfast(["token", "list"])).code).toBe(3);
    expect(received).toEqual([]);
  });

  it("SEC-03 is sent to the supervisor that lives", async () => {
    keepUpFile(upFile, { embedded: true, agent: null }).change({ ready: true, api_url: url });
    await person.holdfast(["token", "list"]);
    expect(received).toEqual(["Bearer hfo_secret"]);
  });
});

describe("another user's installation", () => {
  beforeAll(() => chmodSync(person.home, 0o711));

  it.skipIf(!othersCanRunIt).for([
    ["closed to others", 0o700],
    ["passed through by PostgreSQL's account", 0o711],
  ] as const)("OPS-01 is told by every command, when its directory is %s", async ([, mode]) => {
    keepUpFile(upFile, { embedded: true, agent: null }).change({ ready: true, api_url: url });
    chmodSync(dataDir, mode);
    for (const args of [["status"], ["down"], ["admin", "link"], ["up"]]) {
      const { code, stdout, stderr } = await person.holdfast([...args, "--json"], { uid: nobody });
      expect({ code, stdout }, args.join(" ")).toEqual({ code: 2, stdout: "" });
      const { error } = JSON.parse(stderr.trim().split("\n").at(-1) ?? "");
      expect(error.code).toBe("usage");
      expect(error.message).toMatch(new RegExp(`${dataDir} (belong|cannot be used)`));
    }
  });
});

describe("a user whom the system does not know, without a home", () => {
  const stranger = { uid: 54_321, env: { HOME: undefined, XDG_CONFIG_HOME: undefined } };

  it.skipIf(!othersCanRunIt)("OPS-03 is served when HOLDFAST_DATA_DIR says where", async () => {
    const elsewhere = { ...stranger, env: { ...stranger.env, HOLDFAST_DATA_DIR: "/nowhere/holdfast" } };
    const status = await person.holdfast(["status", "--json"], elsewhere);
    expect(status).toMatchObject({ code: 1, stderr: "" });
    const list = await person.holdfast(["token", "list"], elsewhere);
    expect(list.code).toBe(3);
    expect(list.stderr).toContain("No Holdfast server is running on /nowhere/holdfast");
  });

  it.skipIf(!othersCanRunIt)("OPS-03 is told what to set otherwise", async () => {
    const env = { ...stranger.env, HOLDFAST_DATA_DIR: undefined };
    const up = await person.holdfast(["up"], { ...stranger, env });
    expect(up.code).toBe(2);
    expect(up.stderr).toContain("HOLDFAST_DATA_DIR");
  });
});
