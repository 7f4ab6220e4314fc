// What a preflight is given from outside: hosts and users for ssh, secrets for an edge, files of hosts and environments.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import { edgeHeaders } from "./edge.ts";
import { compareWith, readHostRecord } from "./files.ts";
import { REMOTE_COMMAND, sshArguments } from "./ssh.ts";

const directory = scratchDirectory();
const file = (name: string, content: string) => {
  writeFileSync(join(directory, name), content);
  return join(directory, name);
};

describe("ssh", () => {
  it("PRE-03 is given one fixed command, and never asks", () => {
    const args = sshArguments({ host: "10.0.0.4", user: "ubuntu" });
    expect(args.slice(-3)).toEqual(["--", "10.0.0.4", REMOTE_COMMAND]);
    expect(args).toContain("BatchMode=yes");
  });

  it.for(["-oProxyCommand=x", "a b", "$(id)", "host;id", "", "a'b"])("PRE-03 takes no host like %s", (host) => {
    expect(() => sshArguments({ host })).toThrow("--node-host");
    expect(() => sshArguments({ host: "h", user: host })).toThrow("--node-user");
  });
});

describe("edge authentication", () => {
  it("PRE-05 comes from files or the environment", () => {
    expect(edgeHeaders({}, {})).toEqual({});
    expect(edgeHeaders({}, { HOLDFAST_EDGE_COOKIE: "a=b; c=d\n" })).toEqual({ cookie: "a=b; c=d" });
    const edgeHeaderFile = file("headers", "CF-Access-Client-Id: x\n\nCF-Access-Client-Secret: y\n");
    expect(edgeHeaders({ edgeHeaderFile }, {})).toEqual({
      ...{ "cf-access-client-id": "x", "cf-access-client-secret": "y" },
    });
  });

  it("PRE-05 repeats no secret in an error", () => {
    for (const env of [
      { HOLDFAST_EDGE_HEADERS: "x-secret: hush\u0007" },
      { HOLDFAST_EDGE_COOKIE: "a=hush\u0007" },
    ])
      expect(() => edgeHeaders({}, env)).toThrow(expect.not.stringContaining("hush"));
    expect(() => edgeHeaders({ edgeCookieFile: "/no/such/file" }, {})).toThrow("Cannot read");
  });
});

describe("a host's record", () => {
  const record = (seq: number, reason: string, at: string) =>
    JSON.stringify({ seq, at, reason, detail: reason, correlation_id: null });

  it("DRIFT-08 is the newest of diagnostics.log, whatever its order and damage", () => {
    const lines = [
      record(2, "disk_full", "2026-11-18T10:02:00.000Z"),
      "torn",
      record(1, "process_alive", "2026-11-18T10:01:00.000Z"),
    ];
    const { problems, records } = readHostRecord(file("log", lines.join("\n")));
    expect(problems).toEqual([{ reason: "disk_full", detail: "disk_full" }]);
    expect(records.map(({ reason }) => reason)).toEqual(["process_alive", "disk_full"]);
  });

  it("DRIFT-08 reports nothing of a host that has recovered since", () => {
    const lines = [
      record(1, "disk_full", "2026-11-18T10:01:00.000Z"),
      record(2, "process_alive", "2026-11-18T10:02:00.000Z"),
    ];
    expect(readHostRecord(file("well", lines.join("\n"))).problems).toEqual([]);
    expect(() => readHostRecord(file("none", "{}\n"))).toThrow("no diagnostic records");
  });
});

describe("another environment", () => {
  it("PRE-02 is a profile or a report, and nothing else", () => {
    const endpoints = { node_terminal: "https://term.example.com:18443" };
    expect(compareWith(file("profile", JSON.stringify({ name: "kind", endpoints })))).toEqual({
      ...{ environment: "kind", other: undefined, request: { other: endpoints } },
    });
    expect(() => compareWith(file("other", JSON.stringify({ endpoints: {} })))).toThrow("neither a report");
  });
});
