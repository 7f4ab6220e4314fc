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

/** Where blades leave the stipe, and how the current turns and sizes each. */
const blades = [
  { x: 301, y: 456, turn: 14, size: 0.8 },
  { x: 304, y: 424, turn: 4, size: 1 },
  { x: 312, y: 392, turn: -4, size: 1.15 },
  { x: 322, y: 360, turn: -10, size: 1.2 },
  { x: 332, y: 328, turn: -18, size: 1.15 },
  { x: 344, y: 298, turn: -26, size: 1 },
  { x: 360, y: 272, turn: -36, size: 0.85 },
];

/** The sea pulls it to the right; the holdfast does not let go. */
function Kelp() {
  return (
    <>
      <path
        d="M300 506c-2-40 2-74 12-112 10-40 22-86 50-124"
        stroke="var(--glow)"
        strokeWidth="3"
        strokeLinecap="round"
      />
      {blades.map(({ x, y, turn, size }) => (
        <g key={y} transform={`translate(${x} ${y}) rotate(${turn}) scale(${size})`} fill="var(--glow)">
          <path d="M6 0C24-13 48-1 74-10c20-7 34-4 50-13-9 17-28 21-48 25C50 8 24 13 6 0Z" opacity=".72" />
          <ellipse cx="5" cy="0" rx="6" ry="4.5" />
        </g>
      ))}
      <path
        d="M300 498c-3 20-24 24-46 32M300 498c-2 18-13 28-26 42M300 498v44M300 498c2 18 13 28 26 42M300 498c3 20 24 24 46 32"
        stroke="var(--glow)"
        strokeWidth="3"
        strokeLinecap="round"
      />
    </>
  );
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
      <Kelp />
      <path d="M238 556c6-22 30-34 62-34s58 12 64 34c-28 11-98 11-126 0Z" fill="var(--buoy)" />
    </svg>
  );
}
