import { executor } from "../executor.ts";
import type contract from "./contract.ts";
import { HOP_MS } from "./hops.ts";
import { probeEndpoint } from "./probe.ts";

export default executor<typeof contract>({
  async run({ params, progress, signal, host, fail }) {
    const { profile, stateDir } = host;
    const known = Object.keys(profile.endpoints);
    const names = [...new Set(params.endpoints ?? known)];
    const unknown = names.find((name) => !known.includes(name));
    if (unknown !== undefined)
      throw fail("endpoint_unknown", `The profile has no endpoint ${unknown}; it has ${known.join(", ")}.`);

    let done = 0;
    const reportProgress = () => progress("probing", { done, of: names.length });
    reportProgress();
    const endpoints = await Promise.all(
      names.map(async (name) => {
        const report = await probeEndpoint(name, {
          ...{ stateDir, profile, timing: { signal, hopMs: HOP_MS } },
          holdSeconds: params.hold_seconds,
        });
        done += 1;
        reportProgress();
        return report;
      }),
    );
    return {
      profile: { name: profile.name, version: profile.version },
      ok: endpoints.every(({ ok }) => ok),
      endpoints,
    };
  },
});
