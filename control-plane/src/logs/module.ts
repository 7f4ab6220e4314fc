// Logs: the lines that every process keeps of itself, asked for through an api.

import { defineModule } from "../module.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of requests for log lines. */
    log_request: true;
    /** Ids of requests with another answer. */
    log_answer: true;
  }
}

export const logs = defineModule({
  name: "logs",
  publicRoutes: async (api) => (await import("./routes.ts")).logRoutes(api),
  internalRoutes: async (internalApi, api) => (await import("./routes.ts")).logInternalRoutes(internalApi, api),
  jobs: [
    {
      name: "answer-log-requests-of-apis",
      every: 2,
      wakeOn: ["log_request"],
      runsIn: "each api",
      run: async (context) => {
        const requests = await (await import("./answer.ts")).answerOpenRequests(context);
        context.internal?.askForLogs(requests);
        return { answered: requests.length };
      },
    },
    {
      name: "answer-log-requests-of-workers",
      every: 2,
      wakeOn: ["log_request"],
      runsIn: "each worker",
      run: async (context) => ({
        answered: (await (await import("./answer.ts")).answerOpenRequests(context)).length,
      }),
    },
  ],
});
