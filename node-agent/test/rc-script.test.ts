// The rc.d script for DragonFlyBSD, as far as another system can tell: its syntax, what it hands to daemon(8), and how
// it reads settings. The few functions of rc.subr that it uses are stood in for; it has not run on DragonFlyBSD itself.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const scratch = mkdtempSync(join(tmpdir(), "holdfast-rc-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const script = readFileSync(new URL("../../deploy/rc.d/holdfast_agent", import.meta.url), "utf8");
const subr = join(scratch, "rc.subr");
const env = join(scratch, "agent.env");
const state = join(scratch, "state");

writeFileSync(
  subr,
  `load_rc_config() { holdfast_agent_env=${env} holdfast_agent_state=${state} holdfast_agent_node=/opt/node; }
   warn() { echo "warned: $1"; }
   run_rc_command() { "$start_precmd"; echo "$command $command_args"; env | grep ^HOLDFAST_ | sort; }\n`,
);

describe("the rc.d script", () => {
  it("VM-08 starts the agent under daemon(8) with the settings of its file, and runs nothing that stands there", () => {
    const ran = join(scratch, "ran");
    writeFileSync(
      env,
      `# mine\n\nHOLDFAST_AGENT_PORT=9100\nHOLDFAST_NODE_NAME=reef $(touch ${ran})\nnot a setting\nPA-TH=x\nHOLDFAST_AGENT_BIND=127.0.0.1`,
    );
    const file = join(scratch, "holdfast_agent");
    writeFileSync(file, script.replace(". /etc/rc.subr", `. ${subr}`));
    execFileSync("sh", ["-n", file]);
    const output = execFileSync("sh", [file, "start"], { encoding: "utf8", env: { PATH: "/usr/bin:/bin" } });
    expect(output.trim().split("\n")).toEqual([
      `warned: ${env}: this is not a setting: not a setting`,
      `warned: ${env}: this is not a setting: PA-TH`,
      "/usr/sbin/daemon -c -f -r -S -T holdfast-agent -R 2 -P /var/run/holdfast_agent.pid " +
        "/opt/node /usr/local/libexec/holdfast-agent/agent.mjs agent run",
      "HOLDFAST_AGENT_BIND=127.0.0.1",
      "HOLDFAST_AGENT_PORT=9100",
      `HOLDFAST_AGENT_STATE_DIR=${state}`,
      `HOLDFAST_NODE_NAME=reef $(touch ${ran})`,
    ]);
    expect(() => readFileSync(ran)).toThrow("ENOENT");
  });
});
