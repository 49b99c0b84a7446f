/** What a test's helper found wrong. */
export class TestError extends Error {
  override readonly name = "TestError";
}
