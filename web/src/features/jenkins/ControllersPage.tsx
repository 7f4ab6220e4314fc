// Jenkins controllers: state, last poll, and what to do where one cannot be used.

import type { JenkinsController } from "@holdfast/contracts/endpoints/jenkins";
import { Link } from "@tanstack/react-router";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { ControllerProblem } from "./ControllerProblem.tsx";
import { EnableController } from "./EnableController.tsx";
import { controllerMarks } from "./jenkins-marks.ts";
import { useControllers } from "./queries.ts";

export function ControllersPage() {
  const { org } = useActing();
  const { data, error, refetch } = useControllers();
  return (
    <>
      <PageHeader title="Jenkins">
        Controllers of {org.name}. Each of their queued builds with a served label gets a VM of its own.{" "}
        <LiveMark />
      </PageHeader>
      {error && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading what="controllers" />}
      {data?.length === 0 && (
        <EmptyState icon={<Icon name="jenkins" />} title="No Jenkins controllers yet">
          <p>
            <Prose text="Add one with `holdfast jenkins add <name> --url <url> --user <user> --label <labels=lease-label>`." />
          </p>
        </EmptyState>
      )}
      <ul aria-label="Jenkins controllers" className="grid grid-cols-[minmax(0,1fr)] gap-6 2xl:grid-cols-2">
        {data?.map((controller) => (
          <li key={controller.id}>
            <ControllerCard controller={controller} />
          </li>
        ))}
      </ul>
    </>
  );
}

function ControllerCard({ controller }: { controller: JenkinsController }) {
  const { state, word } = controllerMarks[controller.state];
  return (
    <Card title={controller.name} note={<EnableController controller={controller} />}>
      <div className="flex flex-wrap items-baseline gap-x-4 gap-y-1 px-5 pt-4">
        <StatusMark state={state}>{word}</StatusMark>
        <span className="font-mono text-sm [overflow-wrap:anywhere]">{controller.url}</span>
      </div>
      <ControllerProblem controller={controller} className="px-5 pt-3" />
      <Facts className="px-5 py-1">
        <Fact name="Last poll">
          {controller.last_polled_at ? <When at={controller.last_polled_at} /> : "Never"}
        </Fact>
        <Fact name="Queued">{controller.queued}</Fact>
        <Fact name="VMs">
          {controller.builds} of at most {controller.max_leases}
        </Fact>
      </Facts>
      <p className="border-t border-line px-5 py-3">
        <Link
          to="/jenkins/$controllerId"
          params={{ controllerId: controller.id }}
          className="rounded-sm font-medium text-kelp hover:underline"
        >
          Queue and builds<span className="sr-only"> of {controller.name}</span>
        </Link>
      </p>
    </Card>
  );
}
