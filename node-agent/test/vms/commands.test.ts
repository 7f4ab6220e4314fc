// Commands in the guests of real VMs, over the guest channel.

import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { lacksVms } from "../../../scripts/facilities.mjs";
import type { VmHost } from "../../src/vms/vms.ts";
import { launch, launchParams, startVmHost, stateIn, terminate, vmPlace } from "../support/vm-host.ts";
import { tracesOf } from "../support/vm-traces.ts";

const A_WHILE = 600_000;
const signal = new AbortController().signal;

/** Reads until the command has ended, or until its output has this text. */
async function outputOf(host: VmHost, ids: { vm_id: string; command_id: string }, until?: string) {
  let text = "";
  for (let offset = 0; ; ) {
    const piece = await host.output({ ...ids, offset, wait_seconds: 20 }, signal);
    text += Buffer.from(piece.output, "base64").toString("latin1");
    offset = piece.offset;
    if (piece.exit_code !== null) return { text, code: piece.exit_code };
    if (until !== undefined && text.includes(until)) return { text, code: null };
  }
}

describe.skipIf(lacksVms())("a command in a guest", () => {
  it(
    "VM-03 is started once, has its output and exit code read from any offset, also after a restart of the agent, and ends with its VM",
    async () => {
      const place = vmPlace();
      const first = await startVmHost(place);
      const before = tracesOf(place);
      const wanted = launchParams(place);
      const ids = () => ({ vm_id: wanted.vm_id, command_id: randomUUID() });
      await launch(first.host, wanted);
      const early = { ...ids(), command: ["true"] };
      await expect(first.host.exec(early)).rejects.toMatchObject({ code: "vm_guest_not_connected" });
      await first.reported((one) => stateIn(one, wanted.vm_id) === "connected");

      const all = ids();
      const script = `printf 'one\\377\\n'; echo "two $1" >&2; cat; yes 0123456 | head -c 150000; exit 7`;
      const command = ["sh", "-c", script, "sh", "it's"];
      await first.host.exec({ ...all, command });
      await first.host.exec({ ...all, command });
      const ended = await outputOf(first.host, all);
      expect(ended.code).toBe(7);
      const begin = "one\u00ff\ntwo it's\n";
      expect(ended.text.slice(0, begin.length)).toBe(begin);
      expect(ended.text).toHaveLength(begin.length + 150_000);
      await expect(first.host.output({ ...ids(), offset: 0, wait_seconds: 0 }, signal)).rejects.toMatchObject({
        code: "vm_command_unknown",
      });

      const long = ids();
      await first.host.exec({ ...long, command: ["sh", "-c", "echo begun; sleep 3; echo done; exit 3"] });
      await outputOf(first.host, long, "begun");
      first.host.stop();
      const second = await startVmHost(place);
      expect(await outputOf(second.host, long)).toEqual({ text: "begun\ndone\n", code: 3 });
      await second.reported((one) => stateIn(one, wanted.vm_id) === "connected");

      const endless = ids();
      await second.host.exec({ ...endless, command: ["sleep", "1000"] });
      const waiting = expect(outputOf(second.host, endless)).rejects.toMatchObject({ code: "vm_gone" });
      await terminate(second.host, wanted.vm_id);
      await waiting;
      expect(tracesOf(place)).toEqual(before);
    },
    A_WHILE,
  );
});
