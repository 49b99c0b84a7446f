import { HttpRequestInterceptor } from "@mswjs/interceptors/http";
import { HttpResponse, type RequestHandler } from "msw";
import { defineNetwork, HttpNetworkFrame, InterceptorSource } from "msw/experimental";

/** A network of this process in which msw answers. */
export interface MockedNetwork extends Disposable {
  /** More handlers, asked before the others. */
  use(...handlers: RequestHandler[]): void;
  /** Back to the real network. Idempotent. */
  close(): void;
}

/** How a mocked network treats calls that no handler answers. */
export interface MockedNetworkOptions {
  /**
   * `error` warns of the handler that is missing (`process.emitWarning`), and fails the call: with a network error, or, where it was meant for a router,
   * with 501, which no client tries again. `warn` and `bypass` let it go to the real network. @default "error"
   */
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
    onUnhandledFrame: unhandled === "error" ? ({ frame }) => void fail(frame) : unhandled,
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

/** The paths of a router, behind whatever prefix. */
const routerPath = /\/v1\/(?:executions|capabilities|artifacts\/prewarm)(?:\/|$)/;

/** Fails a call that no handler answers; msw's own words would quote its body. */
function fail(frame: unknown): void {
  if (!(frame instanceof HttpNetworkFrame)) return;
  const { method, url } = frame.data.request;
  const { origin, pathname } = new URL(url);
  const error = `no handler of mockedNetwork answers ${method} ${origin}${pathname}: add one for ${origin}, correct the URL, or give { unhandled: "bypass" }`;
  process.emitWarning(error);
  frame.respondWith(
    routerPath.test(pathname) ? HttpResponse.json({ error }, { status: 501 }) : HttpResponse.error(),
  );
}
