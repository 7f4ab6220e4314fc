import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { type Credentials, credentialPaths, findCredentials, writeCredentials } from "./credentials.ts";

const organizationId = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
const credentials: Credentials = {
  agentId: "01a1e13c-bc3d-71c5-9b58-aada3c2346d5",
  agentToken: `${organizationId}.hfx_secret`,
  organizationId,
  gatewayWsUrl: "ws://localhost:3002/ws",
  apiBaseUrl: "http://localhost:3001",
  name: "host",
  agentVersion: "1.0.0",
  capabilities: { kinds: ["agent.execute"], tags: ["east"], maxInFlight: 4 },
};

function fileWith(content: unknown, mode = 0o600): string {
  const path = join(scratchDirectory(), "agent.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content), { mode });
  chmodSync(path, mode);
  return path;
}

describe("credentials", () => {
  it("EXEC-08 are one file that only its owner may read, replaced as a whole", () => {
    const path = join(scratchDirectory(), "new/agent.json");
    writeCredentials(path, credentials);
    writeCredentials(path, { ...credentials, name: "other" });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(path, ".."))).toEqual(["agent.json"]);
    expect(findCredentials([path])).toEqual({ path, credentials: { ...credentials, name: "other" } });
  });

  it("EXEC-08 of another system are read where there are none of ours, whatever else it wrote there, and not changed", () => {
    const home = scratchDirectory();
    const [own, others = ""] = credentialPaths(undefined, home);
    mkdirSync(join(home, ".vespid"));
    const text = JSON.stringify({
      ...credentials,
      agentToken: `${organizationId}.plain`,
      somethingElse: { a: 1 },
    });
    writeFileSync(others, text, { mode: 0o600 });
    expect(findCredentials([own, others])?.credentials).toEqual({
      ...credentials,
      agentToken: `${organizationId}.plain`,
    });
    expect(readFileSync(others, "utf8")).toBe(text);
    writeCredentials(own, credentials);
    expect(findCredentials([own, others])?.path).toBe(own);
    expect(credentialPaths("/elsewhere.json", home)).toEqual(["/elsewhere.json"]);
  });

  it("EXEC-08 are not found where there is no file", () => {
    expect(findCredentials([join(scratchDirectory(), "none"), "/nonexistent/none"])).toBeUndefined();
  });

  it.for([0o644, 0o640, 0o604, 0o660])("EXEC-08 that others may read are refused: %o", (mode) => {
    const path = fileWith(credentials, mode);
    expect(() => findCredentials([path])).toThrow(`chmod 600 ${path}`);
  });

  it.for<[string, unknown, RegExp]>([
    ["text", "not json", /it is not JSON/],
    ["an empty file", "", /it is not JSON/],
    ["a list", [], /expected object/],
    ["no token", { ...credentials, agentToken: undefined }, /agentToken/],
    ["an empty token", { ...credentials, agentToken: "" }, /agentToken/],
    ["an id that is none", { ...credentials, agentId: "7" }, /agentId/],
    ["an address that is none", { ...credentials, gatewayWsUrl: "http://x" }, /gatewayWsUrl: not a ws/],
    [
      "a token of another organization",
      { ...credentials, agentToken: "0.hfx_secret" },
      /does not begin with organizationId/,
    ],
  ])("EXEC-08 in the wrong form are refused, and nothing of them is shown: %s", ([, content, why]) => {
    const path = fileWith(content);
    expect(() => findCredentials([path])).toThrow(why);
    expect(() => findCredentials([path])).toThrow(path);
    expect(() => findCredentials([path])).not.toThrow(/hfx_secret/);
  });

  it("EXEC-08 that cannot be read or written are reported with their path", () => {
    const directory = scratchDirectory();
    chmodSync(directory, 0o700);
    mkdirSync(join(directory, "agent.json"), { mode: 0o755 });
    expect(() => findCredentials([join(directory, "agent.json")])).toThrow(/agent\.json is a directory/);
    expect(() => writeCredentials(join(directory, "agent.json"), credentials)).toThrow(
      /cannot be written to .*agent\.json/,
    );
  });
});
