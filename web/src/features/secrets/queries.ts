// What the page reads about secrets. There is no value among it.

import { getSecret, listSecrets } from "@holdfast/contracts/endpoints/secrets";
import { useQuery } from "@tanstack/react-query";
import { useActing } from "../../session.ts";

/** Uses are counted elsewhere, without a signal to the page. */
const READ_AGAIN_MS = 15_000;

export function useSecrets() {
  const { org, call } = useActing();
  return useQuery({
    queryKey: ["org", org.id, "secrets", "list"],
    queryFn: async ({ signal }) => (await call(listSecrets, { signal })).items,
    refetchInterval: READ_AGAIN_MS,
  });
}

export function useSecret(id: string) {
  const { org, call } = useActing();
  return useQuery({
    queryKey: ["org", org.id, "secrets", id],
    queryFn: ({ signal }) => call(getSecret, { params: { secret_id: id }, signal }),
  });
}
