// How long a person waits from the command to a system that serves. "Cold" is the very first start:
// no database and no compile cache. The peer is the least that could do the same work with the same
// parts: PostgreSQL's own programs and one bare Fastify process that answers one query.

import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chooseAccount } from "@holdfast/control-plane/database/embedded/account";
import { prepareBinaries } from "@holdfast/control-plane/database/embedded/binaries";
import { dyingWithUs } from "@holdfast/control-plane/database/embedded/launch";
import { serverArguments } from "@holdfast/control-plane/database/embedded/parameters";
import type { Bench, Contest } from "../bench.ts";
import { type RunningHoldfast, startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";
import type { Program } from "../program.ts";
import { median } from "../report.ts";

const peer = "the same PostgreSQL by hand (initdb when cold, postgres) and a bare Fastify answering one query";
const figure = { unit: "s", better: "lower", peer } as const;
const figures = { cold: "cold start", warm: "warm start", npm: "warm start by npm start" };

export const startup: Bench = {
  name: "startup",
  summary: "from the command to ready: first start, second start, and second start by npm start",
  figures: [
    { ...figure, name: figures.cold, target: { of: "ours", value: 4 } },
    { ...figure, name: figures.warm, target: { of: "ours", value: 2 } },
    { ...figure, name: figures.npm },
  ],
  passes: 5,
  prepare: async (lab) => {
    const steps: StepTime[] = [];
    const theirs = prepareStartByHand(lab);
    return { ours: () => measureOurs(lab, steps), theirs, notes: () => describeSteps(steps) };
  },
};

type StepTime = { start: string; step: string; seconds: number };

async function measureOurs(lab: Lab, steps: StepTime[]) {
  const place = lab.directory();
  const options = { dataDirectory: join(place, "data"), compileCache: join(place, "compile-cache") };
  const timed = async (start: string, starting: Promise<RunningHoldfast>) => {
    const running = await starting;
    for (const [step, seconds] of Object.entries(running.steps)) steps.push({ start, step, seconds });
    await running.stop();
    return running.seconds;
  };
  return {
    [figures.cold]: await timed(figures.cold, startHoldfast(lab, options)),
    [figures.warm]: await timed(figures.warm, startHoldfast(lab, options)),
    // As a person has it: with the compile cache that earlier starts left in the checkout.
    [figures.npm]: await timed(
      figures.npm,
      startHoldfast(lab, { dataDirectory: options.dataDirectory, through: "npm" }),
    ),
  };
}

/** A line per kind of start, such as `warm start: Schema is current 0.05 s, …`. */
function describeSteps(steps: StepTime[]): string[] {
  return Object.entries(Object.groupBy(steps, ({ start }) => start)).map(([start, times = []]) => {
    const parts = Object.entries(Object.groupBy(times, ({ step }) => step)).map(
      ([step, same = []]) => `${step} ${median(same.map(({ seconds }) => seconds)).toFixed(2)} s`,
    );
    return `${start}: ${parts.join(", ")}`;
  });
}

function prepareStartByHand(lab: Lab): Contest["theirs"] {
  const account = chooseAccount({ dataDirectory: "" });
  const binaries = prepareBinaries({ directory: lab.directory(), account, onProgress: () => undefined });
  const asAccount = (program: string, args: string[]): Program => {
    const how = dyingWithUs({ account, program, args, signal: "INT" });
    return { command: how.command, args: how.args, ...how.spawn, stopSignal: "SIGINT" };
  };
  const ownedByServer = (path: string) => {
    mkdirSync(path, { mode: 0o700 });
    if (account) chownSync(path, account.uid, account.gid);
    return path;
  };
  const serve = async (data: string, socket: string, compileCache: string) => {
    const args = serverArguments({ dataDirectory: data, socketDirectory: socket, extra: {} });
    const server = lab.start(asAccount(binaries.postgres, args));
    const web = lab.start({
      command: process.execPath,
      args: [fileURLToPath(new URL("../peers/one-query.ts", import.meta.url)), socket],
      env: { NODE_COMPILE_CACHE: compileCache },
    });
    const { url } = (await Promise.race([web.ready, server.output])) as { url: string };
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`the peer answered ${answer.status}: ${await answer.text()}`);
    return async () => {
      await web.stop();
      await server.stop();
    };
  };
  return async () => {
    const place = lab.directory();
    const data = ownedByServer(join(place, "data"));
    const socket = ownedByServer(join(place, "run"));
    const compileCache = join(place, "compile-cache");
    const coldBegan = performance.now();
    await lab.start(asAccount(binaries.initdb, ["-D", data, "--auth=trust", "--username=postgres"])).output;
    const stopFirst = await serve(data, socket, compileCache);
    const cold = (performance.now() - coldBegan) / 1000;
    await stopFirst();
    const warmBegan = performance.now();
    const stopSecond = await serve(data, socket, compileCache);
    const warm = (performance.now() - warmBegan) / 1000;
    await stopSecond();
    return { [figures.cold]: cold, [figures.warm]: warm, [figures.npm]: warm };
  };
}
