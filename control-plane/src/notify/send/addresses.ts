// Which addresses messages may be sent to: the rule of `kit/addresses`, which everything that connects on behalf of others follows.

export {
  AddressRefused,
  type Allowance,
  allowanceOf,
  parseOutsideUrl as parseWebhookUrl,
  resolveAllowed,
} from "@holdfast/kit/addresses";

/** For lists and the audit: the rest of a webhook's URL is often a secret. */
export function displayOf(url: URL): string {
  return url.pathname === "/" && !url.search ? url.origin : `${url.origin}/…`;
}
