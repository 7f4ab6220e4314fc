// The real HTTP listener on a free port, with a few routes of the test's own.

import { createHttpServer, type HttpOptions, type HttpServer } from "../../src/http.ts";
import { createLog } from "../../src/log.ts";
import { createMetrics } from "../../src/metrics.ts";

export type Listener = { http: HttpServer; port: number; url: string; logged: () => string };

export async function startListener(
  options: Partial<Omit<HttpOptions, "exposure">> & {
    exposure?: Partial<HttpOptions["exposure"]>;
    port?: number;
    routes?: (app: HttpServer["app"]) => void;
  } = {},
): Promise<Listener> {
  const lines: string[] = [];
  const { exposure, routes, port: wanted = 0, ...rest } = options;
  const http = createHttpServer({
    process: "test",
    log: createLog({ process: "test", level: "trace", destination: { write: (line) => lines.push(line) } }),
    metrics: createMetrics("test"),
    bodyLimit: 1_024,
    readiness: async () => ({ ready: true, checks: {} }),
    ...rest,
    exposure: {
      bind: "127.0.0.1",
      publicUrl: undefined,
      tlsCertFile: undefined,
      tlsKeyFile: undefined,
      trustedProxies: undefined,
      ...exposure,
    },
  });
  routes?.(http.app);
  const port = await http.listen({ port: wanted, portSetting: "HOLDFAST_TEST_PORT" });
  const scheme = exposure?.tlsCertFile ? "https" : "http";
  return { http, port, url: `${scheme}://127.0.0.1:${port}`, logged: () => lines.join("") };
}
