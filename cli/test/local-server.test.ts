// Whom the commands of this machine believe: only a supervisor that lives gets the operator token.

import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { keepUpFile } from "../src/up/up-file.ts";
import { aPerson } from "./support/command.ts";

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
    keepUpFile(upFile, { embedded: true }).change({ ready: true, api_url: url, supervisor });
    for (const args of [["token", "list"], ["admin", "link"], ["org", "list", "--local"], ["login"]]) {
      const { code, stderr } = await person.holdfast(args);
      expect(code, args.join(" ")).toBe(3);
      expect(stderr).toContain(`No Holdfast runs on ${dataDir}`);
    }
    expect(received).toEqual([]);
  });

  it("SEC-03 is not sent to what an earlier boot of the machine recorded", async () => {
    const boot_id = "00000000-0000-0000-0000-000000000000";
    keepUpFile(upFile, { embedded: true }).change({ ready: true, api_url: url, boot_id });
    expect((await person.holdfast(["token", "list"])).code).toBe(3);
    expect(received).toEqual([]);
  });

  it("SEC-03 is sent to the supervisor that lives", async () => {
    keepUpFile(upFile, { embedded: true }).change({ ready: true, api_url: url });
    await person.holdfast(["token", "list"]);
    expect(received).toEqual(["Bearer hfo_secret"]);
  });
});
