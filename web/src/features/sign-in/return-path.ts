// Where to go after sign-in. It comes from the address bar, so only a path of our own is accepted:
// anything else would let a link send a freshly signed-in person to another site.

export function returnPath(wanted: unknown): string {
  if (typeof wanted !== "string") return "/";
  if (!/^\/(?![/\\])/.test(wanted)) return "/";
  const here = new URL(wanted, "http://holdfast.invalid");
  if (here.host !== "holdfast.invalid" || here.pathname === "/sign-in" || here.pathname === "/link") return "/";
  return `${here.pathname}${here.search}${here.hash}`;
}
