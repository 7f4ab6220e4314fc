// The fleet at a glance: how many nodes are unhealthy, every state with its shape and count, the reasons, and the picture.
// A click on a count filters the list below.

import { type Fleet, fleetStates } from "@holdfast/contracts/endpoints/fleet";
import { fleetStateTitles } from "@holdfast/contracts/words/state-titles";
import { Link } from "@tanstack/react-router";
import { classes } from "../../design/controls/classes.ts";
import { SelectField } from "../../design/forms/Field.tsx";
import { fleetFilter, isNarrowed, type NodeFilters } from "../nodes/filters.ts";
import { FleetShape } from "./FleetMark.tsx";
import { type Grouping, groupings } from "./grouping.ts";
import { Picture } from "./Picture.tsx";
import { useFleetPicture } from "./queries.ts";
import { Troubles } from "./Troubles.tsx";
import { count, nodesInWords, stateInWords } from "./words.ts";

const groupingWords: Record<Grouping, string> = {
  state: "State",
  reason: "Reason",
  version: "Agent version",
  block: "Address block",
};

type FleetCardProps = { fleet: Fleet; filters: NodeFilters; onChange: (filters: NodeFilters) => void };

export function FleetCard({ fleet, filters, onChange }: FleetCardProps) {
  return (
    <section aria-label="The fleet" className="mb-6 overflow-clip rounded-lg border border-line bg-surface">
      <div className="flex flex-wrap items-center justify-between gap-x-8 gap-y-3 border-b border-line px-5 py-4">
        <Headline fleet={fleet} />
        <States fleet={fleet} filters={filters} />
      </div>
      {(fleet.troubles.length > 0 || fleet.pending > 0) && (
        <div className="border-b border-line">
          <Troubles troubles={fleet.troubles} pending={fleet.pending} />
        </div>
      )}
      {fleet.total > 1 && filters.state !== "retired" && <PictureArea filters={filters} onChange={onChange} />}
    </section>
  );
}

function Headline({ fleet: { total, not_fine, states } }: { fleet: Fleet }) {
  if (not_fine === 0) {
    return (
      <p className="text-xl font-semibold tracking-tight">
        {total === 1 ? "The only node is healthy" : `All ${count(total)} nodes are healthy`}
      </p>
    );
  }
  return (
    <p className="text-xl font-semibold tracking-tight">
      <Link
        to="/nodes"
        search={{ state: "not_fine" }}
        resetScroll={false}
        className={classes("rounded-sm hover:underline", states.silent > 0 ? "text-failed" : "text-degraded")}
      >
        {count(not_fine)} of {nodesInWords(total)} {not_fine === 1 ? "is" : "are"} unhealthy
      </Link>
    </p>
  );
}

/** Also the legend of the picture, so with several nodes it lists the states that no node is in, too. */
function States({ fleet, filters }: { fleet: Fleet; filters: NodeFilters }) {
  const shown = fleetStates.filter((state) => fleet.total > 1 || fleet.states[state] > 0);
  return (
    <ul aria-label="Nodes by state" className="-mx-2 flex flex-wrap gap-x-1 gap-y-1">
      {shown.map((state) => {
        const number = fleet.states[state];
        const chosen = filters.state === state;
        return (
          <li key={state}>
            <Link
              to="/nodes"
              search={{ ...filters, state: chosen ? undefined : state, add: undefined }}
              resetScroll={false}
              title={fleetStateTitles[state].meaning}
              aria-current={chosen || undefined}
              className={classes(
                "inline-flex items-center gap-1.5 rounded-md px-2 py-1 hover:bg-hover aria-current:bg-kelp-soft",
                number === 0 && "text-ink-muted",
              )}
            >
              <FleetShape state={state} />
              <span className="font-semibold">{count(number)}</span> {stateInWords(state)}
            </Link>
          </li>
        );
      })}
    </ul>
  );
}

function PictureArea({ filters, onChange }: Omit<FleetCardProps, "fleet">) {
  const { data } = useFleetPicture(fleetFilter(filters), { enabled: true });
  return (
    <div className="px-5 py-4">
      <div className="mb-2 flex flex-wrap items-center justify-between gap-x-6 gap-y-2">
        <p className="text-sm text-ink-muted">
          {isNarrowed(filters) && data ? `${nodesInWords(data.nodes.length)} with these filters. ` : ""}
          One cell is one node.
        </p>
        <SelectField
          label="Group by"
          value={filters.group ?? "state"}
          onChange={(event) => onChange({ ...filters, group: event.currentTarget.value as Grouping })}
          className="flex items-center gap-2 text-sm [&>label]:mb-0 [&>label]:whitespace-nowrap"
        >
          {groupings.map((grouping) => (
            <option key={grouping} value={grouping}>
              {groupingWords[grouping]}
            </option>
          ))}
        </SelectField>
      </div>
      {data && <Picture nodes={data.nodes} grouping={filters.group ?? "state"} />}
    </div>
  );
}
