// The filter is run here by an interpreter of its own, for both processors; on the processor of the host also by the kernel, in
// test/drivers/sandbox/bubblewrap.test.ts.

import { describe, expect, it } from "vitest";
import { seccompFilter } from "./seccomp.ts";
import { type Architecture, auditArchitecture, CLONE3, denied, LAST_KNOWN, restricted } from "./syscalls.ts";

const [ALLOW, KILL, EPERM, ENOSYS] = [0x7fff0000, 0x80000000, 0x50001, 0x50026];

/** Classic BPF, as far as the filter uses it. */
function judge(program: Buffer, call: { number: number; audit: number; args?: number[] }): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number >>> 0, 0);
  data.writeUInt32LE(call.audit, 4);
  for (const [index, value] of (call.args ?? []).entries()) data.writeBigUInt64LE(BigInt(value), 16 + 8 * index);
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
    const [code, k] = [program.readUInt16LE(at * 8), program.readUInt32LE(at * 8 + 4)];
    const jump = (isTrue: boolean) => program.readUInt8(at * 8 + (isTrue ? 2 : 3));
    if (code === 0x20) accumulator = data.readUInt32LE(k);
    else if (code === 0x15) at += jump(accumulator === k);
    else if (code === 0x25) at += jump(accumulator > k);
    else if (code === 0x45) at += jump((accumulator & k) !== 0);
    else if (code === 0x06) return k;
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error("the filter has no end");
}

describe.for<Architecture>(["x64", "arm64"])("the filter of system calls for %s", (architecture) => {
  const program = seccompFilter(architecture);
  const audit = auditArchitecture[architecture];
  const { clone, ioctl, socket } = restricted[architecture];
  const verdict = (number: number, ...args: number[]) => judge(program, { number, audit, args });

  it("SBX-01 denies each call of the list, and no other", () => {
    const numbers = new Set(Object.values(denied[architecture]));
    expect(numbers.size).toBe(Object.keys(denied[architecture]).length);
    for (let number = 0; number <= LAST_KNOWN; number += 1) {
      const expected = numbers.has(number) ? EPERM : number === CLONE3 ? ENOSYS : ALLOW;
      expect([number, verdict(number)]).toEqual([number, expected]);
    }
  });

  it("SBX-01 denies what it does not know, and programs for another processor", () => {
    expect(verdict(LAST_KNOWN + 1)).toBe(ENOSYS);
    // The x32 ABI.
    expect(verdict(0x40000000 + 101)).toBe(ENOSYS);
    expect(judge(program, { number: 0, audit: 0x40000003 })).toBe(KILL);
  });

  it("SBX-01 allows new processes and threads, and no new namespace", () => {
    expect([verdict(clone, 0x1200011), verdict(clone, 0x3d0f00)]).toEqual([ALLOW, ALLOW]);
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect([flag, verdict(clone, flag | 0x11)]).toEqual([flag, EPERM]);
    }
  });

  it("SBX-01 denies typing into terminals, and families of sockets that ignore network namespaces", () => {
    const [TCGETS, TIOCSTI, TIOCLINUX] = [0x5401, 0x5412, 0x541c];
    expect([verdict(ioctl, 1, TCGETS), verdict(ioctl, 1, TIOCSTI), verdict(ioctl, 1, TIOCLINUX)]).toEqual([
      ...[ALLOW, EPERM, EPERM],
    ]);
    // The kernel ignores the upper half of the request.
    expect(verdict(ioctl, 1, 2 ** 32 + TIOCSTI)).toBe(EPERM);
    const [AF_UNIX, AF_INET, AF_NETLINK, AF_ALG, AF_VSOCK] = [1, 2, 16, 38, 40];
    expect([AF_UNIX, AF_INET, AF_NETLINK, AF_ALG, AF_VSOCK].map((family) => verdict(socket, family))).toEqual([
      ...[ALLOW, ALLOW, ALLOW, EPERM, EPERM],
    ]);
  });
});
