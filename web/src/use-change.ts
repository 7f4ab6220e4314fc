// A change to something of the organization: afterwards its listings are read again, a short message
// says what happened, and the dialog closes.

import type { Client } from "@holdfast/contracts/client";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { toast } from "./design/feedback/Toast.tsx";
import { useActing } from "./session.ts";

type ChangeOptions<Answer> = {
  send: (call: Client, idempotencyKey: string) => Promise<Answer>;
  /** Shown on success; absent where the dialog itself shows the result. */
  said?: string;
  onDone?: (answer: Answer) => void;
};

export function useChange<Answer>({ send, said, onDone }: ChangeOptions<Answer>) {
  const { org, call } = useActing();
  const queryClient = useQueryClient();
  return useMutation<Answer, Error, string>({
    mutationFn: (idempotencyKey) => send(call, idempotencyKey),
    onSuccess: async (answer) => {
      await queryClient.invalidateQueries({ queryKey: ["org", org.id] });
      if (said) toast(said);
      onDone?.(answer);
    },
  });
}
