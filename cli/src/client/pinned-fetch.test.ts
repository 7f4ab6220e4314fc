// With certificates of a real authority: its other certificates are as foreign as any.

import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { pinnedFetch } from "./pinned-fetch.ts";

const directory = mkdtempSync(join(tmpdir(), "holdfast-pinned-"));
const at = (name: string) => join(directory, name);
const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
const servers: Server[] = [];

beforeAll(() => {
  openssl("req", "-x509", ...newKey, "-subj", "/CN=authority", "-keyout", at("ca.key"), "-out", at("ca.pem"));
  issue("ours");
  issue("another");
});
afterAll(() => {
  for (const server of servers) server.close();
  rmSync(directory, { recursive: true, force: true });
});

function openssl(...args: string[]): void {
  const { status, stderr } = spawnSync("openssl", args);
  if (status !== 0) throw new Error(String(stderr));
}

/** Signed by the authority; `<name>.pem` is the full chain, as certificate tools write it. */
function issue(name: string): void {
  const authority = ["-CA", at("ca.pem"), "-CAkey", at("ca.key")];
  const made = ["-keyout", at(`${name}.key`), "-out", at(`${name}.leaf.pem`)];
  openssl("req", "-x509", ...authority, ...newKey, "-subj", `/CN=${name}.example.com`, ...made);
  writeFileSync(
    at(`${name}.pem`),
    readFileSync(at(`${name}.leaf.pem`), "utf8") + readFileSync(at("ca.pem"), "utf8"),
  );
}

async function serve(name: string): Promise<string> {
  const pair = { cert: readFileSync(at(`${name}.pem`)), key: readFileSync(at(`${name}.key`)) };
  const server = createServer(pair, (_request, response) => response.end(name)).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe.skipIf(lacks("openssl"))("a pinned certificate", () => {
  it.for(["ours.leaf.pem", "ours.pem"])("SEC-03 is trusted, when the file is %s", async (file) => {
    const response = await pinnedFetch(at(file))(await serve("ours"), {});
    expect(await response.text()).toBe("ours");
  });

  it.for(["ours.leaf.pem", "ours.pem"])(
    "SEC-03 is the only one: another of the same authority is refused, when the file is %s",
    async (file) => {
      await expect(pinnedFetch(at(file))(await serve("another"), {})).rejects.toThrow();
    },
  );

  it("SEC-03 is the first of the file, whatever stands before it", async () => {
    writeFileSync(at("commented.pem"), `subject=ours\n${readFileSync(at("ours.pem"), "utf8")}`);
    const response = await pinnedFetch(at("commented.pem"))(await serve("ours"), {});
    expect(await response.text()).toBe("ours");
    await expect(pinnedFetch(at("commented.pem"))(await serve("another"), {})).rejects.toThrow();
  });
});
