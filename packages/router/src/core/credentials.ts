// Who may do what (execution API, sections 3.2 and 3.3).
import { isAmong } from "./token.ts";

/** The router's tokens at one moment. */
export interface Credentials {
  /** Callers may do everything with one of these. One, but for a rotation. */
  readonly client: readonly Uint8Array[];
  /** What the router shows to dispatchers. Whoever shows it to the router is refused. */
  readonly backend: Uint8Array;
  /** Callers may ask for capabilities with one of these, and for nothing else. Empty where discovery has no token of its own. */
  readonly capability: readonly Uint8Array[];
}

/** Which of the tokens are equal, as words; undefined if all roles differ in content, as they must. */
export function distinctnessProblem({ client, backend, capability }: Credentials): string | undefined {
  // Every pair is compared, so that the time tells nothing of which one was equal.
  const clientIsBackend = isAmong(backend, client);
  const capabilityIsBackend = isAmong(backend, capability);
  const capabilityIsClient = capability.map((token) => isAmong(token, client)).includes(true);
  if (clientIsBackend) return "the client token equals the backend token";
  if (capabilityIsBackend) return "the capability token equals the backend token";
  return capabilityIsClient ? "the capability token equals the client token" : undefined;
}

/**
 * Whether the caller may make this request.
 * @param authorization the header's value, one character a byte
 */
export function isAuthorized(
  method: string,
  path: string,
  authorization: string | undefined,
  credentials: Credentials,
): boolean {
  const token = bearerOf(authorization);
  if (token === undefined) return false;
  const isClient = isAmong(token, credentials.client);
  const isDiscovery = isAmong(token, credentials.capability);
  return isClient || (isDiscovery && method === "GET" && discoveryPath.test(path));
}

/** Sandboxes are not listed here; those who ask for them with this token learn that from a 404, and stop asking. */
const discoveryPath = /^\/v1\/(?:capabilities$|cells(?:$|\?))/;

/** What follows the first space, where `bearer` in any case stands before it. */
function bearerOf(authorization = ""): Buffer | undefined {
  const space = authorization.indexOf(" ");
  if (space === -1 || authorization.slice(0, space).toLowerCase() !== "bearer") return undefined;
  return Buffer.from(authorization.slice(space + 1), "latin1");
}
