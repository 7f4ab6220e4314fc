import { describe, expect, it } from "vitest";
import { createMetrics } from "./metrics.ts";

describe("metrics", () => {
  it("AGENT-04 counts and tells everything in Prometheus' text form", () => {
    const metrics = createMetrics();
    metrics.count("tasks_started_total");
    metrics.count("tasks_started_total", 2);
    metrics.set("connection_up", 1);
    const text = metrics.text();
    expect(text).toContain(
      "# HELP holdfast_agent_tasks_started_total Tasks that began to run.\n" +
        "# TYPE holdfast_agent_tasks_started_total counter\nholdfast_agent_tasks_started_total 3\n",
    );
    expect(text).toContain("# TYPE holdfast_agent_connection_up gauge\nholdfast_agent_connection_up 1\n");
    for (const line of text.trim().split("\n")) {
      expect(line).toMatch(/^(# (HELP|TYPE) holdfast_agent_[a-z_]+ .+|holdfast_agent_[a-z_]+ -?[0-9.e+]+)$/);
    }
  });

  it("AGENT-04 has a line for each counter from the first scrape on", () => {
    const text = createMetrics().text();
    const ofRecovery = ["attempts", "successes", "failures", "suppressed"].map((one) => `recovery_${one}`);
    for (const name of [
      "identity_rejections",
      "tasks_succeeded",
      "tasks_failed",
      "tasks_refused",
      ...ofRecovery,
    ]) {
      expect(text).toContain(`\nholdfast_agent_${name}_total 0\n`);
    }
    expect(text).toContain("\nholdfast_agent_connection_up 0\n");
  });

  it("TERM-09 counts terminals that failed by their code", () => {
    const metrics = createMetrics();
    expect(metrics.text()).not.toContain("terminal_failures_total");
    for (const code of ["terminal_pty_failed", "terminal_stream_lost", "terminal_pty_failed"])
      metrics.countOne("terminal_failures_total", code);
    expect(metrics.text()).toContain(
      "# TYPE holdfast_agent_terminal_failures_total counter\n" +
        'holdfast_agent_terminal_failures_total{code="terminal_pty_failed"} 2\n' +
        'holdfast_agent_terminal_failures_total{code="terminal_stream_lost"} 1\n',
    );
  });

  it("AGENT-04 tells no value that nobody knows yet", () => {
    const metrics = createMetrics();
    expect(metrics.text()).not.toContain("certificate_expires_seconds");
    metrics.set("certificate_expires_seconds", 1_800_000_000);
    expect(metrics.value("certificate_expires_seconds")).toBe(1_800_000_000);
    expect(metrics.text()).toContain("holdfast_agent_certificate_expires_seconds 1800000000\n");
  });
});
