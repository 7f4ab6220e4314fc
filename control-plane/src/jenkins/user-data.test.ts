import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { agentUserData, ENV_FILES } from "./user-data.ts";

const place = scratchDirectory();
const settings = { url: "https://ci.example.com/it's/", nodeName: "holdfast-1", secret: "ab".repeat(32) };
const script = agentUserData(settings);

it("VM-06 writes the agent's settings to both documented places, for root only, and starts java without the secret in an argument", () => {
  const root = join(place, "root");
  mkdirSync(join(root, "bin"), { recursive: true });
  const log = join(root, "calls");
  const program = (name: string, text: string) =>
    writeFileSync(join(root, "bin", name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  program("curl", `echo "curl $*" >> ${log}; while [ "$1" != -o ]; do shift; done; echo jar > "$2"`);
  program("java", `echo "java $*" >> ${log}; echo "secret $(cat .secret)" >> ${log}; kill $PPID`);
  // The same script with its places below a scratch directory.
  const moved = script
    .replaceAll(/(?<![\w.])\/(usr\/local\/etc|etc|var\/lib)\//g, `${root}/$1/`)
    .replace("/dev/console", join(root, "log"));
  const path = join(root, "user-data");
  writeFileSync(path, `${moved}wait\n`);
  execFileSync("sh", [path], { env: { PATH: `${join(root, "bin")}:/usr/bin:/bin` }, stdio: "ignore" });
  for (const file of ENV_FILES) {
    const written = join(root, file);
    expect(statSync(written).mode & 0o077).toBe(0);
    const read = execFileSync("sh", [
      "-c",
      `. ${written}; echo "$JENKINS_URL $JENKINS_AGENT_NAME $JENKINS_SECRET"`,
    ]);
    expect(read.toString().trim()).toBe(`${settings.url} ${settings.nodeName} ${settings.secret}`);
  }
  const calls = readFileSync(log, "utf8").split("\n");
  expect(calls[0]).toContain(`${settings.url}jnlpJars/agent.jar`);
  expect(calls[1]).toMatch(/^java -jar agent\.jar .*-name holdfast-1 .*-secret @\.secret .*-webSocket$/);
  expect(calls[1]).not.toContain(settings.secret);
  expect(calls[2]).toBe(`secret ${settings.secret}`);
});
