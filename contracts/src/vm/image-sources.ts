// From where hosts may fetch base images: prefixes of URLs that the owner of a host allows. Both sides decide by this: the control
// plane chooses a host that may fetch, and the host refuses whatever its owner did not allow, also after a redirect.

/** Undefined: no URL of a file that may be kept and shown, because it has credentials, a query or a fragment in it. */
export function parseImageUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") return undefined;
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return undefined;
  // Some servers read an encoded separator as a real one, which would lead out of an allowed directory.
  return /%(2f|5c)/i.test(url.pathname) ? undefined : url;
}

/** `sources`: such as `https://images.example.com/base/`. One without a final slash allows that file and what is below it. */
export function isAllowedImageUrl(text: string, sources: readonly string[]): boolean {
  const url = parseImageUrl(text);
  if (!url) return false;
  return sources.some((source) => {
    const allowed = parseImageUrl(source);
    if (!allowed || allowed.origin !== url.origin) return false;
    if (allowed.pathname.endsWith("/")) return url.pathname.startsWith(allowed.pathname);
    return url.pathname === allowed.pathname || url.pathname.startsWith(`${allowed.pathname}/`);
  });
}
