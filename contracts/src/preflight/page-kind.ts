// What a response is that did not come from a Holdfast server: proxies have pages for signing in and for too many requests,
// often with status 200. No schema library here: agents load it.

import { isCertificatePage } from "../node/ingress-rejection.ts";

export type PageKind = "rate_limit" | "login" | "certificate" | "other";

const rateLimit = /\b(rate.?limit|too many requests|slow down)/i;
const login = /\b(sign.?in|log.?in|single sign-on|authenticate|oauth2?|openid)\b/i;
const loginPath = /(\/\.pomerium|\/cdn-cgi\/access|\/oauth2?\/|\/login|\/signin|\/sign_in|\/authorize|\/auth\/)/i;

/** `text`: the beginning of the body. `location`: where a redirect leads. */
export function pageKind(page: { status: number; text: string; location?: string | undefined }): PageKind {
  const { status, text, location } = page;
  if (status === 429 || (status >= 400 && rateLimit.test(text))) return "rate_limit";
  if (isCertificatePage({ status, text })) return "certificate";
  if (status >= 300 && status < 400 && location && (loginPath.test(location) || isElsewhere(location)))
    return "login";
  const isHtml = /<(!doctype html|html|form|title)\b/i.test(text);
  if (isHtml && (login.test(text) || /type=["']?password/i.test(text))) return "login";
  return "other";
}

/** Identity-aware proxies send people to the host of their identity provider. */
function isElsewhere(location: string): boolean {
  return /^https:\/\//i.test(location) && login.test(location);
}
