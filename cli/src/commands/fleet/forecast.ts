// holdfast fleet forecast: what a control plane that stays down costs.

import { type FleetForecast, getFleetForecast } from "@holdfast/contracts/endpoints/fleet";
import { type Command, InvalidArgumentError } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { localTime, printResult, span, table } from "../../output.ts";
import { minutesOf } from "../minutes.ts";

export function addForecast(fleet: Command): void {
  withServerOptions(fleet.command("forecast"))
    .description("forecast how many nodes lose their identity if the control plane stays down")
    .option(
      "--until <time>",
      "when it is back: in 90m, 12h or 2d, or an ISO 8601 time; at most two days ahead; default: 24h",
      timeOf,
    )
    .action(async ({ until, ...options }: ServerOptions & { until?: string }) => {
      const client = await connect(options);
      const query = until === undefined ? {} : { until };
      printResult(options, await client(getFleetForecast, { query }), describeForecast);
    });
}

/** Exported for its test. */
export function timeOf(text: string, _before?: string, now = Date.now()): string {
  const at = /^\d{4}-/.test(text) ? Date.parse(text) : now + minutesOf(text) * 60_000;
  if (Number.isNaN(at))
    throw new InvalidArgumentError("Use 90m, 12h or 2d, or a time such as 2026-03-01T18:00:00Z.");
  return new Date(at).toISOString();
}

/** Enough to see when it happens. */
const shownHours: readonly number[] = [1, 3, 6, 12, 18, 24, 36, 48];

/** Exported for its test. */
export function describeForecast({ at, message, points }: FleetForecast): string {
  const rows = shownHours.flatMap((hour) => points[hour] ?? []);
  return [
    message,
    "",
    table(rows, [
      { title: "down for", of: (point) => span(Date.parse(point.at) - Date.parse(at)) },
      { title: "until", of: (point) => localTime(point.at) },
      { title: "lost", of: ({ lost }) => String(lost) },
      { title: "recover by themselves", of: ({ recovering }) => String(recovering) },
      { title: "need an operator", of: ({ lost, recovering }) => String(lost - recovering) },
    ]),
  ].join("\n");
}
