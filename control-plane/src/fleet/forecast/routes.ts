// The forecast over HTTP.

import { FORECAST_HOURS, getFleetForecast } from "@holdfast/contracts/endpoints/fleet";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../../api/context.ts";
import { orgRoute } from "../../api/route.ts";
import { pointsOf, sentenceOf } from "./points.ts";
import { selectLosses, selectNow } from "./queries.ts";

const HOUR_MS = 3_600_000;
const USUAL_HOURS = 24;

export function forecastRoutes(api: ApiContext): void {
  orgRoute(api, getFleetForecast, async ({ tx, query }) => {
    const now = await selectNow(tx);
    const inHours = (hours: number) => new Date(now.getTime() + hours * HOUR_MS);
    const until = query.until === undefined ? inHours(USUAL_HOURS) : new Date(query.until);
    if (until < now || until > inHours(FORECAST_HOURS)) {
      const problem = `must be within the next ${FORECAST_HOURS} hours`;
      throw new ApiError("invalid_request", { details: { fields: [{ field: "query.until", problem }] } });
    }
    const hours = Array.from({ length: FORECAST_HOURS + 1 }, (_, hour) => inHours(hour));
    const times = [...hours, until].sort((a, b) => a.getTime() - b.getTime());
    const losses = await selectLosses(tx, times);
    const points = pointsOf(times, losses);
    const place = times.indexOf(until);
    const atUntil = points[place];
    if (!atUntil) throw new Error("a time of the forecast is missing");
    const nodes = losses.reduce((sum, group) => sum + group.nodes, 0);
    return {
      ...{ at: now.toISOString(), nodes, until: atUntil, message: sentenceOf({ nodes, until: atUntil }) },
      points: points.filter((_, index) => index !== place),
    };
  });
}
