// The filter of system calls of a sandbox, as the classic BPF program that the kernel takes; see seccomp(2). bubblewrap reads it
// from a descriptor. Whatever is not denied is allowed.

import {
  type Architecture,
  auditArchitecture,
  CLONE3,
  denied,
  deniedFamilies,
  deniedIoctls,
  LAST_KNOWN,
  NEW_NAMESPACES,
  restricted,
} from "./syscalls.ts";

type Instruction = { code: number; jt: number; jf: number; k: number };

/** Offsets in `struct seccomp_data`. Of an argument, the lower half: the upper one is no part of what is compared here. */
const NUMBER = 0;
const ARCHITECTURE = 4;
const argument = (index: number) => 16 + 8 * index;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const errno = (number: number) => 0x00050000 | number;
const [EPERM, ENOSYS] = [errno(1), errno(38)];

const load = (offset: number): Instruction => ({ code: 0x20, jt: 0, jf: 0, k: offset });
const give = (k: number): Instruction => ({ code: 0x06, jt: 0, jf: 0, k });
/** Continues with the next instruction when it is true, and otherwise skips so many. */
const ifEqual = (k: number, skip: number): Instruction => ({ code: 0x15, jt: 0, jf: skip, k });
const ifGreater = (k: number, skip: number): Instruction => ({ code: 0x25, jt: 0, jf: skip, k });
const ifAnyBit = (k: number, skip: number): Instruction => ({ code: 0x45, jt: 0, jf: skip, k });

export function seccompFilter(architecture: Architecture): Buffer {
  return encode(filterOf(architecture));
}

function filterOf(architecture: Architecture): Instruction[] {
  const { clone, ioctl, socket } = restricted[architecture];
  return [
    load(ARCHITECTURE),
    // Jumps over the kill.
    { ...ifEqual(auditArchitecture[architecture], 0), jt: 1 },
    give(KILL_PROCESS),
    load(NUMBER),
    // Also those of the x32 ABI, which have a high bit.
    ...[ifGreater(LAST_KNOWN, 1), give(ENOSYS)],
    ...[ifEqual(CLONE3, 1), give(ENOSYS)],
    ...Object.values(denied[architecture]).flatMap((number) => [ifEqual(number, 1), give(EPERM)]),
    ...whenArgument(clone, 0, [[ifAnyBit(NEW_NAMESPACES, 1), give(EPERM)]]),
    ...whenArgument(
      ioctl,
      1,
      deniedIoctls.map((request) => [ifEqual(request, 1), give(EPERM)]),
    ),
    ...whenArgument(
      socket,
      0,
      deniedFamilies.map((family) => [ifEqual(family, 1), give(EPERM)]),
    ),
    give(ALLOW),
  ];
}

/** Ends the filter for this call: the accumulator has its argument afterwards. */
function whenArgument(number: number, index: number, tests: Instruction[][]): Instruction[] {
  const body = [load(argument(index)), ...tests.flat(), give(ALLOW)];
  return [ifEqual(number, body.length), ...body];
}

/** `struct sock_filter`, in the byte order of both processors. */
function encode(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, { code, jt, jf, k }] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(jt, index * 8 + 2);
    bytes.writeUInt8(jf, index * 8 + 3);
    bytes.writeUInt32LE(k >>> 0, index * 8 + 4);
  }
  return bytes;
}
