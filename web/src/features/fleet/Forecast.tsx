// What a control plane that stays down would cost: a sentence, a chart of the next two days, and the same numbers as a table.
// The two series differ by pattern, too: filled is what needs an operator, hatched what recovers by itself.

import { type FleetForecast, FORECAST_HOURS } from "@holdfast/contracts/endpoints/fleet";
import { useId } from "react";
import { exactTime } from "../../design/values/time.ts";
import { areaOf, CHART, stepsOf, topOf } from "./forecast-chart.ts";
import { useForecast } from "./queries.ts";
import { count } from "./words.ts";

export function Forecast() {
  const { data } = useForecast();
  if (!data || data.nodes === 0) return null;
  return (
    <section aria-label="Forecast" className="mt-8 rounded-lg border border-line bg-surface px-5 py-4">
      <h2 className="text-lg font-semibold">If the control plane goes down</h2>
      <p className="mt-1">{data.message}</p>
      <Chart forecast={data} />
      <Numbers forecast={data} />
    </section>
  );
}

function Chart({ forecast: { points, message } }: { forecast: FleetForecast }) {
  const hatch = useId();
  const top = topOf(points);
  const lost = points.map((point) => point.lost);
  const stuck = points.map((point) => point.lost - point.recovering);
  return (
    <figure className="mt-4">
      <div className="flex gap-2 text-xs text-ink-muted tabular-nums">
        <div className="flex flex-col justify-between text-right" aria-hidden="true">
          <span>{count(top)}</span>
          <span>0</span>
        </div>
        <svg
          viewBox={`0 0 ${CHART.width} ${CHART.height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Nodes without identity over the next ${FORECAST_HOURS} hours. ${message}`}
          className="h-28 w-full border-b border-l border-line-strong"
        >
          <defs>
            <pattern id={hatch} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <path d="M0 0V6" stroke="currentColor" strokeWidth="2" className="text-kelp" />
            </pattern>
          </defs>
          <path d={areaOf(lost, top)} fill={`url(#${hatch})`} />
          <path d={areaOf(stuck, top)} fill="currentColor" className="text-degraded" />
          <path
            d={stepsOf(lost, top)}
            fill="none"
            stroke="currentColor"
            strokeWidth="1.5"
            vectorEffect="non-scaling-stroke"
            className="text-ink"
          />
        </svg>
      </div>
      <div className="mt-1 flex justify-between pl-6 text-xs text-ink-muted" aria-hidden="true">
        <span>now</span>
        <span>in {FORECAST_HOURS / 2} h</span>
        <span>in {FORECAST_HOURS} h</span>
      </div>
      <figcaption className="mt-2 flex flex-wrap gap-x-6 gap-y-1 text-sm text-ink-muted">
        <span className="inline-flex items-center gap-1.5">
          <svg viewBox="0 0 12 12" className="size-3 text-degraded" aria-hidden="true">
            <path d="M0 0h12v12H0z" fill="currentColor" />
          </svg>
          needs an operator
        </span>
        <span className="inline-flex items-center gap-1.5">
          <svg viewBox="0 0 12 12" className="size-3 text-kelp" aria-hidden="true">
            <path d="M0 12 12 0M0 6 6 0M6 12l6-6" stroke="currentColor" strokeWidth="1.6" />
          </svg>
          recovers by itself
        </span>
      </figcaption>
    </figure>
  );
}

const TABLE_EVERY_HOURS = 6;

function Numbers({ forecast: { points } }: { forecast: FleetForecast }) {
  const rows = points.filter((_, hour) => hour > 0 && hour % TABLE_EVERY_HOURS === 0);
  return (
    <details className="mt-3 text-sm">
      <summary className="w-fit cursor-pointer rounded-sm text-kelp">Numbers as a table</summary>
      <table className="mt-2 text-left tabular-nums">
        <thead className="text-ink-muted">
          <tr>
            {["Down until", "Lost", "Recover by themselves", "Need an operator"].map((title) => (
              <th key={title} scope="col" className="pr-6 font-medium">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ at, lost, recovering }) => (
            <tr key={at}>
              <th scope="row" className="pr-6 font-normal">
                {exactTime(at)}
              </th>
              {[lost, recovering, lost - recovering].map((number, column) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a row never move
                <td key={column} className="pr-6">
                  {count(number)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
