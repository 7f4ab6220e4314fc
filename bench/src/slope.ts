// The slope of the straight line that fits points best, by least squares.

export type Point = { x: number; y: number };

export function slopeOf(points: readonly Point[]): number {
  const count = points.length;
  if (count < 2) throw new Error("a slope takes two points");
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / count;
  const [x, y] = [mean((point) => point.x), mean((point) => point.y)];
  return mean((point) => (point.x - x) * (point.y - y)) / mean((point) => (point.x - x) ** 2);
}
