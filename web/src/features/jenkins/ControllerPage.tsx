// One Jenkins controller: its queue with what was decided about each item, and its builds with their leases.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { getJenkinsController, JenkinsBuild, JenkinsQueueItem } from "@holdfast/contracts/endpoints/jenkins";
import { itemVerdictTitles } from "@holdfast/contracts/words/vm-titles";
import { getRouteApi, Link } from "@tanstack/react-router";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { leaseMark } from "../leases/lease-marks.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { ControllerProblem } from "./ControllerProblem.tsx";
import { EnableController } from "./EnableController.tsx";
import { buildMarks, controllerMarks } from "./jenkins-marks.ts";
import { useController } from "./queries.ts";

const route = getRouteApi("/signed-in/jenkins/$controllerId");
type Detail = AnswerOf<typeof getJenkinsController>;

export function ControllerPage() {
  const { controllerId } = route.useParams();
  const controller = useController(controllerId);
  if (controller.data) return <Shown controller={controller.data} />;
  return (
    <>
      <PageHeader title="Jenkins controller" />
      <NotLoaded
        noun="controller"
        query={controller}
        explanation="It does not exist, or you have no access to it. If it belongs to another of your organizations, switch to that one first."
      />
    </>
  );
}

function Shown({ controller }: { controller: Detail }) {
  const { state, word } = controllerMarks[controller.state];
  return (
    <>
      <PageHeader
        title={controller.name}
        above={
          <Link to="/jenkins" className="rounded-sm hover:underline">
            Jenkins
          </Link>
        }
        actions={<EnableController controller={controller} />}
      >
        <span className="flex flex-wrap items-baseline gap-x-4 gap-y-1" role="status">
          <StatusMark state={state}>{word}</StatusMark>
          <LiveMark />
        </span>
      </PageHeader>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
        <ControllerProblem controller={controller} />
        <section aria-labelledby="builds">
          <h2 id="builds" className="mb-3 text-lg font-semibold">
            Builds
          </h2>
          {controller.recent.length === 0 ? (
            <p className="text-ink-muted">No build has had a VM yet.</p>
          ) : (
            <Builds builds={controller.recent} />
          )}
        </section>
        <section aria-labelledby="queue">
          <h2 id="queue" className="mb-3 text-lg font-semibold">
            Queue
          </h2>
          {controller.queue.length === 0 ? (
            <p className="text-ink-muted">The queue is empty.</p>
          ) : (
            <Queue items={controller.queue} />
          )}
        </section>
        <Details controller={controller} />
      </div>
    </>
  );
}

function Builds({ builds }: { builds: readonly JenkinsBuild[] }) {
  return (
    <Table label="Builds" columns={["Job", "State", "Lease", { wide: "Claimed" }]}>
      {builds.map((build) => (
        <tr key={build.id}>
          <Cell className="min-w-40">
            <span className="font-medium [overflow-wrap:anywhere]">{build.task}</span>
            <span className="block text-sm text-ink-muted [overflow-wrap:anywhere]">
              {build.build_url ?? build.label}
            </span>
          </Cell>
          <Cell>
            <StatusMark state={buildMarks[build.status].state}>{buildMarks[build.status].word}</StatusMark>
            {build.reason && (
              <span className="block text-sm text-ink-muted">
                <Prose text={`${build.reason.message} ${build.reason.next_step}`} />
              </span>
            )}
          </Cell>
          <Cell>
            <LeaseLink build={build} />
          </Cell>
          <Cell className={wideOnly}>
            <When at={build.created_at} />
          </Cell>
        </tr>
      ))}
    </Table>
  );
}

function LeaseLink({ build }: { build: JenkinsBuild }) {
  if (build.lease_id === null || build.lease_status === null) return <span className="text-ink-muted">None</span>;
  return (
    <Link
      to="/leases/$leaseId"
      params={{ leaseId: build.lease_id }}
      className="rounded-sm font-medium text-kelp hover:underline"
    >
      {leaseMark({ status: build.lease_status }).word}
      <span className="sr-only"> lease of {build.task}</span>
    </Link>
  );
}

function Queue({ items }: { items: readonly JenkinsQueueItem[] }) {
  return (
    <Table label="Queue" columns={["Job", "Label", "Decision", { wide: "Queued" }]}>
      {items.map((item) => (
        <tr key={item.queue_id}>
          <Cell className="min-w-40 font-medium [overflow-wrap:anywhere]">{item.task}</Cell>
          <Cell className="font-mono text-sm [overflow-wrap:anywhere]">{item.label ?? "none"}</Cell>
          <Cell>
            {itemVerdictTitles[item.verdict].title}
            <span className="block text-sm text-ink-muted">{item.message}</span>
          </Cell>
          <Cell className={wideOnly}>{item.queued_at && <When at={item.queued_at} />}</Cell>
        </tr>
      ))}
    </Table>
  );
}

function Details({ controller }: { controller: Detail }) {
  return (
    <Card title="Details">
      <Facts className="px-5 py-1">
        <Fact name="URL">{controller.url}</Fact>
        <Fact name="User">{controller.user}</Fact>
        <Fact name="Labels">
          {controller.labels.map(({ jenkins_labels, lease_label }) => (
            <span key={jenkins_labels.join(" ")} className="block">
              {jenkins_labels.join(", ")} → {lease_label}
            </span>
          ))}
        </Fact>
        <Fact name="Limits">
          {controller.max_leases} VMs, {controller.burst} within {controller.cooldown_seconds} s
        </Fact>
        <Fact name="Last poll">
          {controller.last_polled_at ? <When at={controller.last_polled_at} exact /> : "Never"}
        </Fact>
        <Fact name="Last successful poll">
          {controller.last_succeeded_at ? <When at={controller.last_succeeded_at} exact /> : "Never"}
        </Fact>
      </Facts>
    </Card>
  );
}
