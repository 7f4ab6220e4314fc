// A one-time link: what it is for, the form it asks for, or why there is none.

import { inspectLink } from "@holdfast/contracts/endpoints/sign-in";
import { useQuery } from "@tanstack/react-query";
import { call } from "../../api.ts";
import { Loading } from "../../design/feedback/Loading.tsx";
import { EntryFrame } from "../../design/layout/EntryFrame.tsx";
import { DeadLink, GetAnother } from "./DeadLink.tsx";
import { LinkFormView } from "./LinkForm.tsx";
import { useLinkSecret } from "./secret.ts";

export function LinkPage() {
  const secret = useLinkSecret();
  if (!secret) return <IncompleteLink />;
  return <Inspected key={secret} secret={secret} />;
}

function Inspected({ secret }: { secret: string }) {
  const link = useQuery({
    queryKey: ["link", secret],
    queryFn: ({ signal }) => call(inspectLink, { body: { secret }, signal }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (link.data) return <LinkFormView secret={secret} link={link.data} />;
  if (link.error) return <DeadLink error={link.error} onRetry={() => void link.refetch()} />;
  return (
    <EntryFrame title="One-time link">
      <Loading what="the link" />
    </EntryFrame>
  );
}

function IncompleteLink() {
  return (
    <EntryFrame
      title="The link is incomplete"
      intro="A one-time link ends in # and a secret that begins with hfl_. Here that part is missing: it may have been cut off when the link was copied, or this page was reloaded after opening it."
    >
      <p className="mb-6 font-medium">Open the complete link again. Opening it does not use it up.</p>
      <GetAnother />
    </EntryFrame>
  );
}
