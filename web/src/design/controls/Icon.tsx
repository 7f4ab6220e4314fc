// Our own icons, on a grid of 16, drawn with the current colour. They are decoration: the control
// that shows one carries the name.

const drawings = {
  overview: <path d="M2 13V8.5l6-5.5 6 5.5V13M6 13V9.5h4V13" />,
  nodes: <path d="M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.01M4.5 11h.01M8 5h3.5M8 11h3.5" />,
  hosts: <path d="M2 3h12v10H2zM5 6h3v4H5zM10 6h1.5M10 8h1.5M10 10h1.5" />,
  leases: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.5V8l2.5 1.5" />
    </>
  ),
  jenkins: <path d="M2 4h5v4H2zM9 8h5v4H9zM7 6h4v2M4.5 8v4H9" />,
  allocations: <path d="M2 2.5h7v7H2zM11.5 6.5h2.5v7H7v-2" />,
  agents: <path d="M8 2v3M5 5h6v5H5zM3 14h10M6.5 10v4M9.5 10v4M2 6v3M14 6v3" />,
  workflows: <path d="M5 2h6v4H5zM1.5 10h5v4h-5zM9.5 10h5v4h-5zM8 6v2M4 10V8h8v2" />,
  runs: <path d="M2 8a6 6 0 1 0 2-4.5M4 1v2.5h2.5M6.8 5.5v5l4-2.5z" />,
  executions: <path d="M2 3h12v10H2zM6.5 5.5v5L10.5 8z" />,
  secrets: <path d="M3 7h10v7H3zM5 7V5a3 3 0 0 1 6 0v2M8 10v1.5" />,
  audit: <path d="M4 2h8v12l-2-1.2-2 1.2-2-1.2L4 14zM6.5 5.5h3M6.5 8.5h3" />,
  organization: <path d="M2 14V4l6-2v12M8 6.5l6 1.5v6M1 14h14M4.5 6.5h1M4.5 9.5h1M11 10h.5" />,
  reference: <path d="m5 4.5-3.5 3.5L5 11.5M11 4.5l3.5 3.5-3.5 3.5M9 3 7 13" />,
  person: (
    <>
      <circle cx="8" cy="5.5" r="2.75" />
      <path d="M2.5 14c.5-3 2.7-4.5 5.5-4.5s5 1.5 5.5 4.5" />
    </>
  ),
  chevron: <path d="m4 6.5 4 4 4-4" />,
  upDown: <path d="m5 6 3-3 3 3M5 10l3 3 3-3" />,
  check: <path d="m3 8.5 3.2 3.2L13 4.5" />,
  copy: <path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />,
  close: <path d="m3.5 3.5 9 9M12.5 3.5l-9 9" />,
  menu: <path d="M2 4h12M2 8h12M2 12h12" />,
  more: <path d="M3 8h.01M8 8h.01M13 8h.01" strokeWidth="2.5" />,
  plus: <path d="M8 3v10M3 8h10" />,
  minus: <path d="M3 8h10" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4" />
      <path d="m10 10 3.5 3.5" />
    </>
  ),
  terminal: <path d="M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10h3" />,
  eye: (
    <>
      <path d="M1.5 8C3 5 5.3 3.5 8 3.5S13 5 14.5 8C13 11 10.7 12.5 8 12.5S3 11 1.5 8Z" />
      <circle cx="8" cy="8" r="2" />
    </>
  ),
  eyeOff: (
    <path d="M2 2l12 12M6 3.8C10 2.7 13 5 14.5 8c-.5 1-1.1 1.8-1.8 2.5M9.8 12.2C6 13.3 3 11 1.5 8c.5-1 1.2-1.9 2-2.6" />
  ),
  arrow: <path d="M3 8h10M9 4l4 4-4 4" />,
};

export type IconName = keyof typeof drawings;

export function Icon({ name, className = "size-4 shrink-0" }: { name: IconName; className?: string }) {
  return (
    <svg
      viewBox="0 0 16 16"
      className={className}
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      {drawings[name]}
    </svg>
  );
}
