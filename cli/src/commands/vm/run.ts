// holdfast vm run: a command in a fresh VM. Its output is shown as it comes, its exit code is that of the command, and the VM is
// terminated whatever happens; if this process is killed, by its time to live.

import { randomUUID } from "node:crypto";
import type { Client } from "@holdfast/contracts/client";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import {
  createLease,
  endedLeaseStates,
  getLease,
  readLeaseOutput,
  runLeaseCommand,
  terminateLease,
} from "@holdfast/contracts/endpoints/leases";
import { getTask, listTasks, type Task, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { TerminatedVm, VmOutput } from "@holdfast/contracts/node/vm-host";
import { type VmProfile, vmProfiles } from "@holdfast/contracts/vm/profiles";
import { type Command, Option } from "commander";
import { changesOf, patiently } from "../../client/changes.ts";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { finishOnClosedOutput } from "../../closed-output.ts";
import { exitCodes, Refusal } from "../../failure.ts";
import { harmless } from "../../output.ts";
import { whenConnected } from "../lease/lease.ts";
import { wholeNumber } from "../options.ts";
import { failureOf } from "../task/run.ts";

type RunOptions = ServerOptions & {
  label?: string;
  image?: string;
  profile?: VmProfile;
  timeout: number;
  wait: number;
};
type Shown = AnswerOf<typeof getLease>;

export function addRunInVm(vm: Command): void {
  withServerOptions(vm.command("run"))
    .description("run a command in a fresh VM: shows its output, exits with its exit code, and removes the VM")
    .argument("<command...>", "the program and its arguments, after --")
    .option("--image <id>", "the base image")
    .option("--label <label>", "what the VM is for: fills in what is not given here")
    .addOption(new Option("--profile <profile>", "the size").choices(vmProfiles))
    .option(
      "--timeout <seconds>",
      "the VM is terminated after this time",
      wholeNumber({ min: 60, max: 604_800 }),
      3600,
    )
    .option(
      "--wait <seconds>",
      "give up without a host after this time",
      wholeNumber({ min: 1, max: 86_400 }),
      300,
    )
    .action(run);
}

async function run(command: string[], options: RunOptions): Promise<void> {
  const client = await connect(options);
  const { label, image: image_id, profile, timeout: ttl_seconds, wait: wait_seconds } = options;
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort());
  const lease = await client(createLease, { body: { label, image_id, profile, ttl_seconds, wait_seconds } });
  const removed = Promise.withResolvers<void>();
  finishOnClosedOutput(() => {
    stop.abort();
    return removed.promise;
  });
  try {
    const code = await runIn(client, lease.id, { command, signal: stop.signal });
    process.exitCode = code ?? exitCodes.interrupted;
  } finally {
    await terminate(client, lease.id).finally(removed.resolve);
  }
}

/** Undefined: it was interrupted. */
async function runIn(
  client: Client,
  leaseId: string,
  { command, signal }: { command: string[]; signal: AbortSignal },
): Promise<number | undefined> {
  const params = { lease_id: leaseId };
  const created = await client(getLease, { params });
  const lease = await whenConnected(client, created, { signal });
  if (signal.aborted) return undefined;
  if (lease.status !== "connected" && lease.status !== "running") throw await notConnected(client, lease);
  const body = { command_id: randomUUID(), command };
  const started = await patiently(
    (deadline) => client(runLeaseCommand, { params, body, signal: deadline }),
    signal,
  );
  if (!started || !(await completed(client, started.task_id, signal))) return undefined;
  let read: string | undefined;
  for (let offset = 0; ; ) {
    const at = { params, query: { command_id: body.command_id, offset, read } };
    const asked = await patiently((deadline) => client(readLeaseOutput, { ...at, signal: deadline }), signal);
    const task = asked && (await completed(client, asked.task_id, signal));
    if (!task) return undefined;
    const piece = task.result as VmOutput;
    process.stdout.write(Buffer.from(piece.output, "base64"));
    offset = piece.offset;
    read = asked.task_id;
    if (piece.exit_code === null) continue;
    if (piece.cut) process.stderr.write("The output was longer than a host keeps; the rest was dropped.\n");
    return piece.exit_code;
  }
}

/** Undefined: it was interrupted. */
async function completed(client: Client, taskId: string, signal: AbortSignal): Promise<Task | undefined> {
  const params = { task_id: taskId };
  let latest = await patiently((deadline) => client(getTask, { params, signal: deadline }), signal);
  if (!latest) return undefined;
  const changes = changesOf(latest, {
    read: (wait, deadline) => client(getTask, { params, query: { ...wait, until: "end" }, signal: deadline }),
    ended: ({ status }) => terminalStatuses.has(status),
    signal,
  });
  for await (const task of changes) latest = task;
  if (signal.aborted) return undefined;
  if (latest.status !== "completed") throw failureOf(latest);
  return latest;
}

async function notConnected(client: Client, lease: Shown): Promise<Refusal> {
  const reason = lease.reason ?? {
    ...{ code: "lease_not_connected", message: `The lease is ${lease.status}.` },
    next_step: `Run \`holdfast lease show ${lease.id}\`.`,
  };
  const tail = await serialTail(client, lease);
  const console = tail === "" ? "" : `\nThe end of its serial console:\n${tail}`;
  return new Refusal(reason.code, { message: reason.message + console, nextStep: reason.next_step });
}

/** Its host reports it when the VM is removed, which may be a moment after its end. */
async function serialTail(client: Client, lease: Shown): Promise<string> {
  const { host_id, vm_id } = lease;
  if (host_id === null || vm_id === null) return "";
  const changes = changesOf(lease, {
    read: (query, deadline) => client(getLease, { params: { lease_id: lease.id }, query, signal: deadline }),
    ended: ({ status }) => endedLeaseStates.has(status),
    signal: AbortSignal.timeout(30_000),
  });
  for await (const _ of changes);
  const { items } = await client(listTasks, { query: { node_id: host_id, limit: 50 } });
  const removal = items.find(({ params, result }) => {
    const isOfVm = (params as { vm_id?: string }).vm_id === vm_id;
    return isOfVm && result !== null && "serial_tail" in (result as object);
  });
  return (removal?.result as TerminatedVm | undefined)?.serial_tail.trimEnd() ?? "";
}

async function terminate(client: Client, leaseId: string): Promise<void> {
  const params = { lease_id: leaseId };
  const lease = await patiently((signal) => client(terminateLease, { params, signal }), undefined);
  if (lease && !endedLeaseStates.has(lease.status) && lease.status !== "terminating")
    process.stderr.write(
      `${harmless(`Lease ${leaseId} is ${lease.status}. Run \`holdfast lease show ${leaseId}\`.`)}\n`,
    );
}
