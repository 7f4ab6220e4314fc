// What an operator should know about a host beside its figures: why guests are slow, which images cannot be used, what was found.

import type { VmHost } from "@holdfast/contracts/endpoints/hosts";
import { Prose } from "../../design/layout/Prose.tsx";

/** Guests of an emulated processor are an order of magnitude slower: an operator should know why. */
export function Slow({ host }: { host: VmHost }) {
  const refused = host.accelerators.filter(({ usable }) => !usable);
  return (
    <p className="px-5 pt-2 text-sm text-ink-muted">
      Guests run slowly: their processor is emulated.
      {refused.map(({ name, detail }) => ` ${name} does not work here: ${detail.replace(/[.]$/, "")}.`)}
    </p>
  );
}

/** What to do about images that leases cannot use. */
export function ImageAdvice({ host }: { host: VmHost }) {
  const unusable = host.images.filter(({ problem }) => problem !== null);
  const unlisted = host.images.find(({ problem, in_catalogue }) => problem === null && !in_catalogue);
  return (
    <>
      {unusable.map(({ id, problem }) => (
        <span key={id} className="block text-sm text-ink-muted">
          {id}: {problem}
        </span>
      ))}
      {unlisted && (
        <span className="block text-sm text-ink-muted">
          <Prose text={`Leases can name ${unlisted.id} after \`holdfast image add ${unlisted.id}\`.`} />
        </span>
      )}
    </>
  );
}

const MOST_STRAYS = 5;
const actionWords: Record<VmHost["strays"][number]["action"], string> = {
  removed: "removed",
  would_remove: "will be removed",
  kept: "kept",
};

export function Strays({ host }: { host: VmHost }) {
  const { strays } = host;
  return (
    <>
      <ul className="grid gap-0.5">
        {strays.slice(0, MOST_STRAYS).map(({ kind, name, action, why }) => (
          <li key={`${kind} ${name}`} className="[overflow-wrap:anywhere]">
            {kind} <span className="font-mono text-sm">{name}</span>{" "}
            <span className="text-sm text-ink-muted">
              {actionWords[action]}: {why}
            </span>
          </li>
        ))}
        {strays.length > MOST_STRAYS && <li className="text-ink-muted">and {strays.length - MOST_STRAYS} more</li>}
      </ul>
      <span className="block text-sm text-ink-muted">
        <Prose text={`\`holdfast host clean ${host.name} --dry-run\` explains what would be removed.`} />
      </span>
    </>
  );
}
