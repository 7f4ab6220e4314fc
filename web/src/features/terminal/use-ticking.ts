import { useEffect, useState } from "react";

/** The connection's clock, ten times a second: these waits are short, and each is watched. */
export function useTicking(): number {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 100);
    return () => clearInterval(timer);
  }, []);
  return now;
}
