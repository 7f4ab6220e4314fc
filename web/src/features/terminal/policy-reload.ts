// The policy that came with the page names the gateways of that moment. One that was announced later is
// reached after a reload, which is done by itself, but not again and again.

const storedAs = "holdfast.terminal.reloaded";
const notAgainMs = 60_000;

export function reloadForPolicy(): void {
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
