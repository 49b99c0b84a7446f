/** Why a signed request was refused; the names are those of the protocol. */
export type PeerRefusalError =
  | "unauthorized"
  | "incompatible-version"
  | "wrong-target"
  | "replay"
  | "replay-capacity";

/** A refusal, ready to be answered. */
export interface PeerRefusal {
  readonly ok: false;
  readonly error: PeerRefusalError;
  /** Status of the answer. */
  readonly status: number;
  /** Body of the answer: bare text, sent as `content-type: application/json` like every node does. */
  readonly message: string;
  /** Whether the answer carries `x-cells-route-error: stale-owner`, so that the sender looks up the owner again. */
  readonly staleOwner: boolean;
}

const answers = {
  unauthorized: [401, "peer authentication failed"],
  "incompatible-version": [426, "peer protocol version is incompatible"],
  "wrong-target": [409, "peer request targets a different node session"],
  replay: [409, "peer request replay rejected"],
  "replay-capacity": [503, "peer replay cache is full"],
} as const satisfies Record<PeerRefusalError, readonly [number, string]>;

/** Calls that follow an owner's route; on these a wrong target means that the route is stale. */
const routedPath = /^\/(?:__do|__rpc|__abort|peer\/tunnel|peer\/abort)(?:[/?]|$)/;

/** The refusal of a request with this target (path and query). */
export function refusal(error: PeerRefusalError, target: string): PeerRefusal {
  const [status, message] = answers[error];
  return {
    ok: false,
    error,
    status,
    message,
    staleOwner: error === "wrong-target" && routedPath.test(target),
  };
}
