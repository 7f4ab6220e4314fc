// The agent that the api hands out: to anybody, on both listeners, and nothing but the agent.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getAgentRelease } from "@holdfast/contracts/endpoints/agent-release";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { createLog } from "@holdfast/service/log";
import Fastify from "fastify";
import { beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { installCommand } from "../src/agent-release/install-command.ts";
import { type AgentRelease, openAgentReleases } from "../src/agent-release/release.ts";
import { agentReleaseRoutes } from "../src/agent-release/routes.ts";

const directory = mkdtempSync(join(tmpdir(), "holdfast-release-"));
atEnd(() => rmSync(directory, { recursive: true, force: true }));
const sha256Of = (content: string | Buffer) => createHash("sha256").update(content).digest("hex");
const content = Buffer.from("what would be an archive");
const sha256 = sha256Of(content);
const file = `holdfast-agent-1.2.3-linux-x64-${sha256.slice(0, 16)}.tar.gz`;

function pack(version: string): void {
  const archive = { arch: "x64", file, sha256, bytes: content.length, unpacked_bytes: 1000 };
  writeFileSync(join(directory, file), content);
  writeFileSync(join(directory, "release.json"), JSON.stringify({ version, archives: [archive] }));
}

const lines: string[] = [];
const log = createLog({ process: "api", level: "trace", destination: { write: (line) => lines.push(line) } });
const releases = openAgentReleases(log, directory);
const current = () => releases.current() as AgentRelease;

describe("the packed agent", () => {
  const http = Fastify();
  agentReleaseRoutes({ http, agentReleases: releases });
  const ask = (headers: Record<string, string> = {}, method: "GET" | "HEAD" = "GET", path = `/agent/${file}`) =>
    http.inject({ method, url: path, headers });

  it("AGENT-09 is found as soon as it is packed, and one that is damaged is not handed out", () => {
    expect(releases.current()).toBeUndefined();
    writeFileSync(join(directory, "release.json"), '{"version": "1\'; reboot"}');
    expect(releases.current()).toBeUndefined();
    expect(lines.at(-1)).toContain("npm run pack-agent");
    pack("1.2.3");
    expect(releases.current()?.version).toBe("1.2.3");
  });

  it("AGENT-09 is sent whole or in parts, may be cached without limit, and is not sent again to whoever has it", async () => {
    const whole = await ask();
    expect([whole.statusCode, whole.body]).toEqual([200, content.toString()]);
    expect(whole.headers).toMatchObject({
      "content-length": String(content.length),
      "cache-control": expect.stringContaining("immutable"),
      etag: `"${sha256}"`,
      "accept-ranges": "bytes",
    });
    expect((await ask({ "if-none-match": `"${sha256}"` })).statusCode).toBe(304);
    const head = await ask({}, "HEAD");
    expect([head.statusCode, head.body, head.headers["content-length"]]).toEqual([
      200,
      "",
      String(content.length),
    ]);
    const parts: [string, number, string][] = [
      ["bytes=5-9", 206, "would"],
      ["bytes=14-", 206, "an archive"],
      ["bytes=-7", 206, "archive"],
      ["bytes=5-999", 206, "would be an archive"],
      ["bytes=24-", 416, ""],
      ["bytes=9-5", 416, ""],
      ["bytes=0-1,3-4", 200, content.toString()],
      ["lines=1-2", 200, content.toString()],
    ];
    for (const [range, status, body] of parts) {
      const answer = await ask({ range });
      expect([range, answer.statusCode, answer.body]).toEqual([range, status, body]);
    }
    const other = await ask({ range: "bytes=5-9", "if-range": '"another"' });
    expect([other.statusCode, other.body]).toEqual([200, content.toString()]);
  });

  it("AGENT-09 is all that can be asked for", async () => {
    for (const path of ["release.json", "..%2f..%2fpackage.json", "../package.json", "%2e%2e", ".", ""]) {
      const { statusCode } = await ask({}, "GET", `/agent/${path}`);
      expect([path, statusCode]).toEqual([path, 404]);
    }
  });

  it("AGENT-09 comes with an installer that knows its digest, whose own digest is in the line", async () => {
    const { body } = await ask({}, "GET", "/agent/install.sh");
    expect(body).toContain(`\nSERVED_X64='${file} ${sha256} ${content.length} 1000'\nSERVED_ARM64=''\n`);
    const command = installCommand(current(), { token: "hfe_secret", apiUrl: "https://reef.example:18442" });
    expect(command).toContain(`echo "${sha256Of(body)}  $d/i" | sha256sum -c`);
    expect(command).toContain("https://reef.example:18442/agent/install.sh");
    // In a pipe, and in no argument of a program.
    expect(command.match(/hfe_secret/g)).toHaveLength(1);
    expect(command).toContain("&& printf '%s\\n' hfe_secret | sh ");
    for (const shell of ["sh", "bash"]) execFileSync(shell, ["-n", "-c", command]);
  });
});

describe("the api", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startTestApi();
  });

  it("AGENT-09 hands the installer out on both listeners, without a certificate, and names no file in an error", async () => {
    const { install_command } = await api.operator()(createEnrollmentToken, { body: {} });
    const [, promised] = /echo "([0-9a-f]{64}) {2}/.exec(install_command ?? "") ?? [];
    for (const url of [api.url, api.nodeUrl]) {
      const installer = await download(`${url}/agent/install.sh`);
      expect([installer.status, sha256Of(installer.body)]).toEqual([200, promised]);
      const missing = await download(`${url}/agent/..%2frelease.json`);
      expect([missing.status, JSON.parse(missing.body).code]).toEqual([404, "route_not_found"]);
    }
    const release = await api.operator()(getAgentRelease, {});
    expect(release.upgrade_command).toContain(promised);
    expect(release.upgrade_command).not.toContain("--token");
    expect(release.archives.map(({ url }) => url)).toContainEqual(
      expect.stringContaining(`${api.nodeUrl}/agent/holdfast-agent-${release.version}-linux-`),
    );
    const script = readFileSync(new URL("../../deploy/install-agent.sh", import.meta.url), "utf8");
    expect(script).toContain("\nSERVED_X64=''\n");
  });
});

function download(url: string): Promise<{ status: number | undefined; body: string }> {
  if (url.startsWith("http:"))
    return fetch(url).then(async (one) => ({ status: one.status, body: await one.text() }));
  return new Promise((resolve, reject) => {
    get(url, { rejectUnauthorized: false, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode, body }));
    }).on("error", reject);
  });
}
