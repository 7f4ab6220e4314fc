// What must be decided before the first paint and before any module runs.

// The theme, so that a dark page never flashes white. src/theme.ts changes it later.
(() => {
  let choice = null;
  try {
    choice = localStorage.getItem("holdfast.theme");
  } catch {
    // Storage may be forbidden; the system's preference decides then.
  }
  const dark = choice ? choice === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();

// zod probes for `new Function` unless told not to, and our content security policy reports the probe.
globalThis.__zod_globalConfig = { jitless: true };
