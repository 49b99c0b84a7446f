// The steps of a rotation, and what is to be done in each.

/** The steps by name. */
export type RotationStep =
  | "backend"
  | "client-routers-accept"
  | "client-routers"
  | "client-controller"
  | "capability-routers-accept"
  | "capability-routers"
  | "capability-api-server";

/** What whoever does a step has to do. */
export const instructions: Readonly<Record<RotationStep, string>> = {
  backend: "put the new backend token on every dispatcher and every router, together",
  "client-routers-accept": "let every router accept the new client token beside the old one",
  "client-routers": "let every router accept the new client token and no other",
  "client-controller": "put the new client token on the controller",
  "capability-routers-accept": "let every router accept the new discovery token beside the old one",
  "capability-routers": "let every router accept the new discovery token and no other",
  "capability-api-server": "put the new discovery token on the API server",
};
