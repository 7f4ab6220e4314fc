// The mark: two blades of kelp, a stipe, and the holdfast that grips the rock.

function Logo({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" className={className} aria-hidden="true" fill="none">
      <g stroke="var(--glow)" strokeWidth="2.4" strokeLinecap="round">
        <path d="M16 17.5V13c0-3.4-4.2-3.6-4.2-8" />
        <path d="M16 12.5c0-3 4.6-2.8 4.6-6.5" />
        <path d="M16 17c-.3 4.2-3 4.7-6.6 5.6M16 17v6.2M16 17c.3 4.2 3 4.7 6.6 5.6" />
      </g>
      <path d="M5 27.2c2.6-3 6.5-4.2 11-4.2s8.4 1.2 11 4.2z" fill="var(--buoy)" />
    </svg>
  );
}

export function Wordmark() {
  return (
    <span className="flex items-center gap-2.5">
      <Logo className="size-7" />
      <span className="text-lg font-semibold tracking-tight text-on-deep">Holdfast</span>
    </span>
  );
}
