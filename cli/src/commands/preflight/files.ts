// Files that a preflight is given: the host's own record, and another environment to compare with.

import { readFileSync } from "node:fs";
import { HOST_PREFLIGHT_FORMAT, HostPreflight, HostRecord } from "@holdfast/contracts/preflight/host-report";
import { PREFLIGHT_FORMAT, PreflightReport } from "@holdfast/contracts/preflight/report";
import { isProblem } from "@holdfast/contracts/reasons/node";
import type { Means } from "@holdfast/control-plane/preflights/run/means";
import { UsageError } from "@holdfast/kit/settings";

const MOST_RECORDS = 64;

/** Of `holdfast agent preflight --json`, or of diagnostics.log, which is written in a circle and may have a torn line. */
export function readHostRecord(path: string): HostPreflight {
  const text = read(path);
  const whole = parse(text);
  if (isObject(whole) && whole["format"] === HOST_PREFLIGHT_FORMAT) {
    const report = HostPreflight.safeParse(whole);
    if (report.success) return report.data;
    throw new UsageError(
      `${path} is not a report of \`holdfast agent preflight --json\`: ${report.error.message}`,
    );
  }
  const records = text
    .split("\n")
    .flatMap((line) => {
      const value = parse(line);
      const record = HostRecord.safeParse(value);
      return record.success ? [{ ...record.data, seq: Number((value as { seq?: number }).seq ?? 0) }] : [];
    })
    .sort((one, other) => one.seq - other.seq)
    .slice(-MOST_RECORDS)
    .map(({ seq: _, ...record }) => record);
  if (records.length === 0) {
    throw new UsageError(
      `${path} contains no diagnostic records. It is diagnostics.log in the agent's state directory, or the output of \`holdfast agent preflight --json\`.`,
    );
  }
  const latest = records.toSorted((one, other) => (timeOf(one) < timeOf(other) ? 1 : -1))[0];
  return {
    ...{ format: HOST_PREFLIGHT_FORMAT, at: timeOf(latest as HostRecord), hostname: null, private_ip: null },
    ...{ node_id: null, profile: null, agent_running: null, disk: null, endpoints: [], records },
    // The last thing that happened is what counts: an agent that came back recorded that, too.
    problems: latest && isProblem(latest.reason) ? [{ reason: latest.reason, detail: latest.detail }] : [],
  };
}

const timeOf = ({ at, last_at = at }: HostRecord) => last_at;

type Compared = {
  environment: string;
  /** Known already, of a report. */
  other: Means["other"];
  /** To be tried from the node. */
  request: { other?: { node_api?: string; node_terminal?: string } };
};

export function compareWith(path: string): Compared {
  const value = parse(read(path));
  if (isObject(value) && value["format"] === PREFLIGHT_FORMAT) {
    const { data } = PreflightReport.safeParse(value);
    if (!data) throw new UsageError(`${path} is not a report of \`holdfast preflight --json\`.`);
    const works = (name: string) => {
      const status = data.hops.find(({ hop }) => hop === name)?.status;
      return status === "passed" ? true : status === "failed" ? false : null;
    };
    const environment = data.expected.profile ?? data.expected.api_url ?? path;
    const api = works("node_runtime_api_reachability");
    return {
      environment,
      other: { environment, api, terminal: works("node_terminal_reachability") },
      request: {},
    };
  }
  const endpoints = isObject(value) && isObject(value["endpoints"]) ? value["endpoints"] : undefined;
  const [node_api, node_terminal] = [endpoints?.["node_api"], endpoints?.["node_terminal"]];
  if (typeof node_api !== "string" && typeof node_terminal !== "string") {
    throw new UsageError(
      `${path} is neither a report of \`holdfast preflight --json\` nor an environment profile with endpoints node_api and node_terminal.`,
    );
  }
  const environment = isObject(value) && typeof value["name"] === "string" ? value["name"] : path;
  const request = {
    other: {
      ...(typeof node_api === "string" ? { node_api } : {}),
      ...(typeof node_terminal === "string" ? { node_terminal } : {}),
    },
  };
  return { environment, other: undefined, request };
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function read(path: string): string {
  try {
    return readFileSync(path === "-" ? 0 : path, "utf8");
  } catch (error) {
    throw new UsageError(`Cannot read ${path}: ${(error as Error).message}`);
  }
}
