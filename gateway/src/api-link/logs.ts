// Answers the api's requests for the log lines of this gateway.

import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import { reportLogLines } from "@holdfast/contracts/internal/logs";
import type { Log } from "@holdfast/service/log";
import { answerLogRequest } from "@holdfast/service/log-store/answer";
import type { OwnProcess } from "@holdfast/service/log-store/own-process";
import type { ApiLink } from "./link.ts";

type LogsWanted = Extract<ServiceNews, { type: "logs_wanted" }>;

/** An answer that does not arrive is not repeated: the api names this gateway as unreachable, and may ask again. */
export function answerForLogs(
  api: Pick<ApiLink, "ask" | "instanceId">,
  own: OwnProcess,
  { news: { type: _, ...request }, log }: { news: LogsWanted; log: Log },
): void {
  const answer = answerLogRequest(own, request);
  const body = { instance_id: api.instanceId, answer };
  api
    .ask(reportLogLines, { params: { request_id: request.request_id }, body })
    .catch((error: Error) => log.debug({ reason: error.message }, "could not return log lines to the api"));
}
