// The page is older than the server: the policy that came with it does not name a gateway that was announced
// later, or the code it asks for is that of another release. A reload fixes both; it is done by itself, but
// not again and again.

const storedAs = "holdfast.terminal.reloaded";
const notAgainMs = 60_000;

export function reloadOnce(): void {
  try {
    const last = Number(sessionStorage.getItem(storedAs) ?? 0);
    if (Date.now() - last < notAgainMs) return;
    sessionStorage.setItem(storedAs, String(Date.now()));
  } catch {
    // Without storage nothing would keep it from reloading forever.
    return;
  }
  window.location.reload();
}
