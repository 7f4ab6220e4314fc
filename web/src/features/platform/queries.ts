// The installation itself, for its operator. Read again every ten seconds.

import { getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api.ts";

export const platformStatusQuery = queryOptions({
  queryKey: ["platform", "status"],
  queryFn: ({ signal }) => call(getPlatformStatus, { signal }),
  refetchInterval: 10_000,
});
