// The first administrator's way in: a link that works once, made only while nobody administers.

import { createClient } from "@holdfast/contracts/client";
import { createAdminLink, getPlatformStatus } from "@holdfast/contracts/endpoints/platform";

/** Undefined when there is an administrator already, who has a password. */
export async function firstAdminLink(options: { apiUrl: string; token: string }): Promise<string | undefined> {
  const call = createClient({ baseUrl: options.apiUrl, token: options.token });
  const status = await call(getPlatformStatus, {});
  if (status.administrator_exists) return undefined;
  const link = await call(createAdminLink, { body: {} });
  return link.url;
}
