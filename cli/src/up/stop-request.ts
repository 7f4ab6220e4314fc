// A request to stop, as two signals: the first Ctrl-C (or SIGTERM, or a closed terminal) asks for an
// orderly stop, a later one for a quick one. A single Ctrl-C may arrive twice within a moment, from
// the terminal and from npm or a wrapper that passes it on; that counts as one request.

export type StopRequest = { asked: AbortSignal; hurry: AbortSignal };

const samePersonMs = 700;

export function listenForStop(): StopRequest {
  const asked = new AbortController();
  const hurry = new AbortController();
  let firstAt = 0;
  const onSignal = () => {
    if (!asked.signal.aborted) {
      firstAt = Date.now();
      asked.abort();
    } else if (Date.now() - firstAt > samePersonMs) {
      hurry.abort();
    }
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, onSignal);
  return { asked: asked.signal, hurry: hurry.signal };
}

export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
