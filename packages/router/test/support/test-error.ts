/** What test helpers throw. */
export class TestError extends Error {
  override readonly name = "TestError";
}
