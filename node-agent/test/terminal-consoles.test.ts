// Consoles of VMs in their holders. In place of a VM runs a program that reads the pipe and writes the log as QEMU's launcher does:
// what a console sees of a VM is these two files and a process.

import { spawn } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identify } from "@holdfast/kit/processes";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { openSerialLog } from "../src/drivers/pty/serial-log.mjs";
import { plain, readSerial, unfinished } from "../src/vms/serial.ts";
import { terminalHost } from "./support/terminals.ts";

/** Repeats each line that it gets. */
const program =
  'mkfifo serial.in && exec 3<> serial.in && while read -r line <&3; do echo "guest: $line"; done >> serial.log';

async function vm() {
  const directory = scratchDirectory();
  const log = join(directory, "serial.log");
  writeFileSync(log, "booted\n");
  const child = spawn("sh", ["-c", program], { cwd: directory, stdio: "ignore" });
  atEnd(() => child.kill("SIGKILL"));
  const process = identify(child.pid ?? 0);
  if (!process) throw new Error("it ended");
  // What is written to a pipe that nobody has open is lost.
  const greet = () => {
    writeFileSync(join(directory, "serial.in"), "hello\n", { flag: "r+" });
    return readFileSync(log, "utf8");
  };
  await expect.poll(() => (existsSync(join(directory, "serial.in")) ? greet() : "")).toContain("guest: hello\n");
  return { directory, log, child, at: async () => ({ console: { directory, ...process } }) };
}

describe("a console of a VM", () => {
  it("VM-03 shows the end of the serial log, passes input on, and is not the only one", async () => {
    const host = await terminalHost();
    const guest = await vm();
    const [one, other] = [await host.open({}, { at: guest.at }), await host.open({}, { at: guest.at })];
    for (const { stream } of [one, other]) {
      await stream.attach();
      await expect.poll(() => stream.text()).toContain("booted\nguest: hello\n");
    }
    one.stream.type("from one\n");
    other.stream.type("from the other\n");
    for (const { stream } of [one, other])
      await expect.poll(() => stream.text()).toMatch(/guest: from one\n|guest: from the other\n/);
    await expect.poll(() => one.stream.text().match(/^guest: from/gm)?.length).toBe(2);
  });

  it("VM-03 reads on when the log is full and a new one is begun", async () => {
    const host = await terminalHost();
    const guest = await vm();
    const { stream } = await host.open({}, { at: guest.at });
    await stream.attach();
    await expect.poll(() => stream.text()).toContain("guest: hello\n");
    appendFileSync(guest.log, "last line of the full log\n");
    renameSync(guest.log, `${guest.log}.1`);
    appendFileSync(guest.log, "first line of the next\n");
    await expect.poll(() => stream.text()).toContain("last line of the full log\nfirst line of the next\n");
  });

  it("VM-04 ends with its VM, with its last output and the reason", async () => {
    const host = await terminalHost();
    const guest = await vm();
    const { stream } = await host.open({}, { at: guest.at });
    await stream.attach();
    await expect.poll(() => stream.text()).toContain("guest: hello");
    appendFileSync(guest.log, "power down\n");
    guest.child.kill("SIGKILL");
    expect(await stream.frame("error")).toMatchObject({ code: "terminal_vm_ended" });
    expect(stream.text()).toContain("power down\n");
    await expect(host.open({}, { at: guest.at })).rejects.toMatchObject({ message: "The VM has ended." });
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });

  it("VM-04 is closed without an effect on its VM, and found again by the next agent", async () => {
    const host = await terminalHost();
    const guest = await vm();
    const { stream, sessionId } = await host.open({}, { at: guest.at });
    await stream.attach();
    host.terminals.stop();
    await host.restart();
    const again = await host.gateway.stream(sessionId, stream);
    await again.attach();
    again.type("still here\n");
    await expect.poll(() => again.text()).toContain("guest: still here\n");
    again.send({ type: "close", reason: "terminal_closed" });
    await expect.poll(() => host.sockets("shell")).toEqual([]);
    expect(guest.child.exitCode).toBeNull();
  });
});

describe("a serial log", () => {
  const read = (log: ReturnType<typeof openSerialLog>) => {
    const buffer = Buffer.alloc(1024);
    let text = "";
    for (let count = -1; count !== 0; text += buffer.toString("utf8", 0, count)) count = log.read(buffer);
    return text;
  };

  it("VM-03 is read from a place on, through one change of files; after two, something is missing", () => {
    const path = join(scratchDirectory(), "serial.log");
    const rotate = (text: string) => {
      renameSync(path, `${path}.1`);
      writeFileSync(path, text);
    };
    writeFileSync(path, "one\n");
    const first = openSerialLog(path, { most: 1024 });
    expect(read(first)).toBe("one\n");
    const from = first.place();
    first.close();
    appendFileSync(path, "two\n");
    rotate("three\n");
    const second = openSerialLog(path, { from, most: 1024 });
    expect([read(second), second.takeSkipped()]).toEqual(["two\nthree\n", false]);
    second.close();
    rotate("four\n");
    const third = openSerialLog(path, { from, most: 1024 });
    expect([read(third), third.takeSkipped()]).toEqual(["three\nfour\n", true]);
    third.close();
    const end = openSerialLog(path, { most: 8 });
    expect(read(end)).toBe("four\n");
  });

  it("VM-03 is waited for, and returned without control characters and in whole characters", async () => {
    const serialLog = join(scratchDirectory(), "serial.log");
    writeFileSync(serialLog, "a\r\n");
    const reading = { most: 4096, signal: new AbortController().signal };
    const first = await readSerial({ serialLog }, () => true, { ...reading, from: null, waitMs: 0 });
    expect(first).toMatchObject({ text: "a\n", skipped: false });
    const next = readSerial({ serialLog }, () => true, { ...reading, from: first?.place ?? "", waitMs: 60_000 });
    appendFileSync(
      serialLog,
      Buffer.concat([Buffer.from("\x1b[1;32mgrün\x1b[0m\x00"), Buffer.from("ü").subarray(0, 1)]),
    );
    const second = await next;
    expect(second?.text).toBe("grün");
    appendFileSync(serialLog, Buffer.from("ü").subarray(1));
    const third = await readSerial({ serialLog }, () => true, {
      ...reading,
      from: second?.place ?? "",
      waitMs: 0,
    });
    expect(third?.text).toBe("ü");
    expect(await readSerial({ serialLog }, () => false, { ...reading, from: null, waitMs: 0 })).toBeUndefined();
  });

  it.for([
    ["abc", 0],
    ["grün", 0],
    ["\x1b", 1],
    ["x\x1b[0;3", 5],
    ["\x1b[0m", 0],
  ] as const)("VM-03 %j ends with %i bytes that are not complete", ([text, count]) => {
    expect(unfinished(Buffer.from(text))).toBe(count);
    expect(plain(Buffer.from(`${text}\x07`))).not.toContain("\x07");
  });
});
