// A duration as people type it: 90 or 90m (minutes), 12h, 30d.

import { InvalidArgumentError } from "commander";

const minutesIn = { m: 1, h: 60, d: 24 * 60 };

export function minutesOf(text: string): number {
  const [, digits, unit = "m"] = /^([1-9]\d{0,6})([mhd])?$/.exec(text) ?? [];
  if (digits === undefined) {
    throw new InvalidArgumentError("Use a whole number of minutes, hours or days: 90, 90m, 12h or 30d.");
  }
  return Number(digits) * minutesIn[unit as keyof typeof minutesIn];
}
