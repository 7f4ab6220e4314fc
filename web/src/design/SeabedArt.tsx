// Depth contours of a rock on the sea bed, as on a nautical chart. Decoration beside sign-in.

const centre = { x: 300, y: 520 };
const rings = Array.from({ length: 15 }, (_, index) => contour(index));

/** A closed curve whose unevenness grows and turns with its distance from the rock. */
function contour(index: number): string {
  const radius = 34 + index * 30 + index * index * 1.3;
  const points = Array.from({ length: 72 }, (_, step) => {
    const angle = (step / 72) * 2 * Math.PI;
    const uneven =
      1 +
      0.13 * Math.sin(2 * angle + 0.6 + index * 0.11) +
      0.07 * Math.sin(3 * angle - index * 0.17) +
      0.035 * Math.sin(5 * angle + index * 0.4);
    const x = centre.x + Math.cos(angle) * radius * uneven * 1.15;
    const y = centre.y + Math.sin(angle) * radius * uneven * 0.82;
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  return `M${points.join("L")}Z`;
}

export function SeabedArt({ className }: { className?: string }) {
  return (
    <svg
      viewBox="0 0 600 900"
      preserveAspectRatio="xMidYMid slice"
      className={className}
      aria-hidden="true"
      fill="none"
    >
      {rings.map((ring, index) => (
        <path
          key={ring}
          d={ring}
          stroke="var(--glow)"
          strokeWidth={index % 5 === 0 ? 1.4 : 0.8}
          opacity={0.5 - index * 0.026}
          strokeLinejoin="round"
        />
      ))}
      <g stroke="var(--glow)" strokeWidth="3" strokeLinecap="round">
        <path d="M300 508c-2-46 22-62 6-112-9-28 8-52 2-88" />
        <path d="M302 470c4-36-26-52-18-94 4-20-6-34-2-52" opacity=".75" />
        <path d="M300 506c-4 14-18 18-34 20M300 506c-2 12-8 20-18 30M300 506v32M300 506c2 12 8 20 18 30M300 506c4 14 18 18 34 20" />
      </g>
      <path d="M246 552c10-20 30-29 54-29s44 9 54 29c-24 10-84 10-108 0Z" fill="var(--buoy)" />
    </svg>
  );
}
