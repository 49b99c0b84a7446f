export type { BackendOptions } from "./mocked-backend.ts";
export { type MockedNetwork, type MockedNetworkOptions, mockedNetwork } from "./mocked-network.ts";
export type { MockedCall, RouterHandlers } from "./mocked-router.ts";
export type { RouterFault } from "./router-fault.ts";
export { type RouterHandlerOptions, routerHandlers } from "./router-handlers.ts";
