import { HttpRequestInterceptor } from "@mswjs/interceptors/http";
import type { RequestHandler } from "msw";
import { defineNetwork, InterceptorSource } from "msw/experimental";

/** A network of this process in which msw answers. */
export interface MockedNetwork extends Disposable {
  /** More handlers, asked before the others. */
  use(...handlers: RequestHandler[]): void;
  /** Back to the real network. Idempotent. */
  close(): void;
}

/** How a mocked network treats calls that no handler answers. */
export interface MockedNetworkOptions {
  /** `error` fails them, `warn` and `bypass` let them go to the real network. @default "error" */
  readonly unhandled?: "error" | "warn" | "bypass";
}

/**
 * Lets msw answer every HTTP call of this process, also those of undici (`request`, `Client`, `Pool`, `Agent`), which
 * `setupServer` of msw does not catch: it listens below HTTP. So this is what `RouterClient` and `CapabilityClient` are
 * tested with. WebSockets are not caught.
 *
 * It stands on `msw/experimental`, whose exact version this package asks for.
 */
export function mockedNetwork(
  handlers: readonly RequestHandler[],
  { unhandled = "error" }: MockedNetworkOptions = {},
): MockedNetwork {
  const network = defineNetwork({
    sources: [new InterceptorSource({ interceptors: [new HttpRequestInterceptor()] })],
    handlers: [...handlers],
    onUnhandledFrame: unhandled,
    // Its log of each call would print bearers.
    context: { quiet: true },
  });
  network.enable();
  let isOpen = true;
  const close = () => {
    if (isOpen) network.disable();
    isOpen = false;
  };
  return { use: (...more) => network.use(...more), close, [Symbol.dispose]: close };
}
