import type { Reporter, TestModule } from "vitest/node";

/** Ends a run with one plain line that counts its tests, for whoever reads the log by machine. */
class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state] += 1;
    }
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  }
}

// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export
export default ClosingLineReporter;
