// The list of first steps, each with the page where it is done.

import { listMembers } from "@holdfast/contracts/endpoints/members";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import { listTokens } from "@holdfast/contracts/endpoints/tokens";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Icon } from "../../design/controls/Icon.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { type State, StatusMark } from "../../design/values/StatusMark.tsx";
import { useActing } from "../../session.ts";
import { firstSteps, type Step } from "./first-steps.ts";

export function FirstSteps() {
  const { org, call } = useActing();
  const counts = useQuery({
    queryKey: ["org", org.id, "first-steps"],
    queryFn: async ({ signal }) => {
      const [members, tokens, nodes] = await Promise.all([
        call(listMembers, { query: { limit: 2 }, signal }),
        call(listTokens, { query: { limit: 1 }, signal }),
        call(listNodes, { query: { state: "present", limit: 1 }, signal }),
      ]);
      return { members: members.items.length, tokens: tokens.items.length, nodes: nodes.items.length };
    },
    staleTime: 0,
  });
  const steps = counts.data && firstSteps({ role: org.role, organizationName: org.name, ...counts.data });
  const open = steps?.filter((step) => step.state === "open").length ?? 0;
  return (
    <Card title="First steps" note={steps && (open === 0 ? "All done" : `${open} to do`)}>
      {counts.error && (
        <div className="p-5">
          <ErrorNotice error={counts.error} onRetry={() => void counts.refetch()} />
        </div>
      )}
      {!steps && !counts.error && (
        <div className="px-5">
          <Loading what="first steps" />
        </div>
      )}
      {steps && (
        <ol>
          {steps.map((step) => (
            <StepRow key={step.id} step={step} />
          ))}
        </ol>
      )}
    </Card>
  );
}

const marks: Record<Step["state"], { state: State; word: string }> = {
  done: { state: "ok", word: "Done" },
  open: { state: "degraded", word: "To do" },
};

const places: Partial<Record<Step["id"], { to: string; label: string; search?: { add: "yes" } }>> = {
  name: { to: "/organization/settings", label: "Rename it" },
  people: { to: "/organization/members", label: "Invite people" },
  token: { to: "/organization/tokens", label: "Create a token" },
  node: { to: "/nodes", label: "Add a node", search: { add: "yes" } },
};

function StepRow({ step }: { step: Step }) {
  const mark = marks[step.state];
  const place = places[step.id];
  return (
    <li className="grid gap-x-4 gap-y-1 border-b border-line px-5 py-4 last:border-b-0 sm:grid-cols-[5.5rem_minmax(0,1fr)_auto]">
      <StatusMark state={mark.state}>{mark.word}</StatusMark>
      <div>
        <h3 className="font-medium">{step.title}</h3>
        <p className="text-ink-muted">{step.text}</p>
      </div>
      {place && step.state !== "done" && (
        <Link
          to={place.to}
          search={place.search ?? {}}
          className="inline-flex items-center gap-1.5 self-start rounded-sm font-medium whitespace-nowrap text-kelp hover:underline"
        >
          {place.label}
          <Icon name="arrow" className="size-3.5" />
        </Link>
      )}
    </li>
  );
}
