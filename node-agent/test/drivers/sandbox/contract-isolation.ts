// What a sandbox keeps from a script. Attempts to break out stand in a suite of their own; these are the properties.

import { createServer } from "node:net";
import { expect } from "vitest";
import { atEnd } from "../../../../testkit/lifetime/at-end.ts";
import { SECRET_FILE, SECRET_FILE_VARIABLE } from "../../../src/drivers/sandbox/driver.ts";
import { type ContractCheck, ended, run, running, start, uniqueSleep, until } from "./bench.ts";

const needs = "isolation" as const;

export const isolationContract: ContractCheck[] = [
  {
    name: "the root is read-only; /work, where a script begins, and /tmp are writable",
    needs,
    async check(bench) {
      const places = "/ /usr /etc /root /var /run /dev /proc /sys";
      const script = `pwd; for d in ${places} /work /tmp; do (: > $d/holdfast-probe && rm $d/holdfast-probe) 2>/dev/null && echo $d; done`;
      expect((await run(bench, { script })).stdout).toBe("/work\n/work\n/tmp\n");
    },
  },
  {
    name: "neither devices nor programs with privileges of their own work in /work and /tmp",
    needs,
    async check(bench) {
      const script =
        "while read -r _ path _ options _; do case $path in /work|/tmp) echo $path,$options, ;; esac; done < /proc/mounts";
      const { stdout } = await run(bench, { script });
      const places = stdout.trim().split("\n").toSorted();
      expect(places.map((line) => line.split(",")[0])).toEqual(["/tmp", "/work"]);
      for (const line of places) expect(line).toMatch(/,nosuid,(.*,)?nodev,/);
    },
  },
  {
    name: "a script has no privileges and cannot get any",
    needs,
    async check(bench) {
      const { stdout } = await run(bench, {
        script: "id -u; grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp:' /proc/self/status",
      });
      const [user, ...lines] = stdout.trim().split("\n");
      expect(user).not.toBe("0");
      const none = "0000000000000000";
      expect(Object.fromEntries(lines.map((line) => line.split(/:\s*/)))).toEqual({
        ...{ CapPrm: none, CapEff: none, CapBnd: none },
        ...{ NoNewPrivs: "1", Seccomp: "2" },
      });
    },
  },
  {
    name: "without network there is no interface but loopback, and the host's loopback cannot be reached",
    needs,
    async check(bench) {
      const server = createServer((socket) => void socket.end("reached")).listen(0, "127.0.0.1");
      await new Promise((resolve) => server.once("listening", resolve));
      atEnd(() => void server.close());
      const { port } = server.address() as { port: number };
      const script = `cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d " " | grep -v "^lo$"; (exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3) 2>/dev/null; echo end`;
      expect((await run(bench, { shell: "bash", script })).stdout).toBe("end\n");
    },
  },
  {
    name: "a script sees no process of the host, and none of another run",
    needs,
    async check(bench) {
      const sleep = uniqueSleep();
      const other = start(bench, { script: sleep });
      await until(bench, () => running(sleep).length === 1, "the other run");
      const { stdout } = await run(bench, {
        script: "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; ls -d /proc/[0-9]* | wc -l",
      });
      other.handle.kill();
      await ended(bench, other.handle);
      expect(stdout).not.toContain(sleep.split(" ")[1]);
      expect(Number(stdout.trim().split("\n").at(-1))).toBeLessThan(12);
    },
  },
  {
    name: "the secret is in a file in memory, and not in the environment",
    needs,
    async check(bench) {
      const script = `echo $${SECRET_FILE_VARIABLE}; env | grep -c hidden; stat -f -c %t ${SECRET_FILE}; ls /work`;
      expect((await run(bench, { script, secret: "hidden" })).stdout).toBe(`${SECRET_FILE}\n0\n1021994\n`);
    },
  },
  {
    name: "no descriptor leads anywhere but input, output and errors",
    needs,
    async check(bench) {
      // Without a pipeline, whose pipes the shell itself would have open for a moment.
      const script = "for fd in /proc/$$/fd/*; do case $fd in */[012]) ;; *) readlink $fd ;; esac; done; true";
      const { stdout } = await run(bench, { script, secret: "hidden" });
      expect(stdout.split("\n").filter((line) => line !== "" && line !== "/dev/null")).toEqual([]);
    },
  },
];
