import {
  Dispatcher,
  FormData,
  Headers,
  type Request,
  type RequestInit,
  Response,
  fetch as undiciFetch,
} from "undici";
import {
  type Attempt,
  type AttemptSource,
  type NotedCallOptions,
  noteCall,
  rememberAttempts,
} from "./attempts.ts";
import type { Fleet } from "./fleet.ts";
import { nodesOf } from "./fleet-nodes.ts";
import type { CallOptions } from "./options.ts";
import { type AnyBody, isOneShot } from "./request-body.ts";

/** Init of a fetch through a fleet: undici's, and what this call may say to the fleet. */
export type FleetRequestInit = RequestInit & { fleet?: CallOptions };

/** `fetch`, through a fleet. */
export type FleetFetch = (input: string | URL | Request, init?: FleetRequestInit) => Promise<Response>;

/**
 * A `fetch` that goes through the fleet. It is undici's own; relative URLs resolve against the authority. No status
 * rejects; network failures reject with `TypeError("fetch failed")` whose `cause` is a {@link FleetError}.
 * @param defaults options for every call; `init.fleet` goes over them
 */
export function createFetch(fleet: Fleet, defaults: CallOptions = {}): FleetFetch {
  const { authority } = nodesOf(fleet);
  return async (input, init = {}) => {
    const { fleet: settings, ...rest } = init;
    const target = typeof input === "string" ? new URL(input, authority) : input;
    const route = new FetchRoute(fleet, { ...defaults, ...settings }, init.body as AnyBody);
    if (init.body instanceof FormData) Object.assign(rest, await route.serialize(init.body, init.headers));
    const response = await undiciFetch(target, { ...rest, dispatcher: route });
    rememberAttempts(response, route);
    return response;
  };
}

/**
 * The dispatcher of one fetch. undici's fetch hands over a one-shot iterable even for a string, so the body that the
 * caller gave is put back in its place: that one can be sent again.
 */
class FetchRoute extends Dispatcher implements AttemptSource {
  readonly #fleet: Fleet;
  readonly #settings: CallOptions & NotedCallOptions;
  #body: AnyBody;
  readonly #calls: AttemptSource[] = [];

  constructor(fleet: Fleet, settings: CallOptions, body: AnyBody) {
    super();
    this.#fleet = fleet;
    this.#settings = { ...settings, [noteCall]: (call: AttemptSource) => this.#calls.push(call) };
    this.#body = isOneShot(body) ? undefined : body;
  }

  /** Of every hop, in order. */
  get attempts(): readonly Attempt[] {
    return this.#calls.flatMap(({ attempts }) => attempts);
  }

  /** A form's boundary is drawn when it is serialised: once, here, so that body and content type stay a pair. */
  async serialize(
    form: FormData,
    headers: RequestInit["headers"],
  ): Promise<Pick<RequestInit, "body" | "headers">> {
    const serialized = new Response(form);
    const bytes = new Uint8Array(await serialized.arrayBuffer());
    this.#body = bytes;
    const merged = new Headers(headers);
    if (!merged.has("content-type")) merged.set("content-type", serialized.headers.get("content-type") ?? "");
    return { body: bytes, headers: [...merged] };
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const substitute = this.#body !== undefined && options.body !== null && options.body !== undefined;
    return this.#fleet.dispatch(
      {
        ...options,
        ...(substitute ? { body: this.#body as NonNullable<typeof options.body> } : {}),
        fleet: this.#settings,
      },
      handler,
    );
  }
}
