// The shape of the forecast's chart: steps, because a certificate expires at a moment. Coordinates of an SVG that is as wide
// as its hours.

import type { ForecastPoint } from "@holdfast/contracts/endpoints/fleet";

export const CHART = { width: 480, height: 96 } as const;

/** The top of the scale: never less than one node, so that an empty chart has one. */
export function topOf(points: readonly ForecastPoint[]): number {
  return Math.max(1, ...points.map(({ lost }) => lost));
}

/** The upper edge of an area, from left to right. */
export function stepsOf(values: readonly number[], top: number): string {
  const x = (index: number) => round((index / Math.max(1, values.length - 1)) * CHART.width);
  const y = (value: number) => round(CHART.height - (value / top) * CHART.height);
  return values.map((value, index) => (index === 0 ? `M0 ${y(value)}` : `H${x(index)}V${y(value)}`)).join("");
}

export function areaOf(values: readonly number[], top: number): string {
  return `${stepsOf(values, top)}V${CHART.height}H0Z`;
}

const round = (value: number) => Math.round(value * 10) / 10;
