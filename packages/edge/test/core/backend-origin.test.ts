import { expect, it } from "vitest";
import { parseBackendOrigin } from "../../src/core/backend-origin.ts";
import { backendVectors } from "../support/vectors.ts";

it.each(backendVectors)("the vector $origin: accepted $accepted", ({ origin, accepted }) => {
  expect(parseBackendOrigin(origin) !== undefined).toBe(accepted);
});

it.each([
  "http://127.0.0.1:0",
  "http://127.0.0.1:65536",
  "http://127.0.0.1:08788",
  "http://127.0.0.256:1",
  "http://127.1:8788",
  "http://127.0.0.01:8788",
  "http://2130706433:8788",
  "http://0x7f.0.0.1:8788",
  "http://128.0.0.1:8788",
  "http://::1:8788",
  "http://[::]:8788",
  "http://[::ffff:127.0.0.1]:8788",
  "http://[0:0:0:0:0:0:0:1]:8788",
  "HTTP://127.0.0.1:8788",
  " http://127.0.0.1:8788",
  "http://127.0.0.1:8788\n",
  "http://127.0.0.1:8788@example.com",
  "http://@127.0.0.1:8788",
  "unix:/run/router.sock",
  "",
])("%j is refused", (text) => expect(parseBackendOrigin(text)).toBeUndefined());

it("the parts of an address are told, IPv6 without its brackets where it is dialled", () => {
  expect(parseBackendOrigin("http://127.0.0.1:65535")).toEqual({
    origin: "http://127.0.0.1:65535",
    authority: "127.0.0.1:65535",
    host: "127.0.0.1",
    port: 65_535,
  });
  expect(parseBackendOrigin("http://[::1]:1")).toMatchObject({ authority: "[::1]:1", host: "::1", port: 1 });
});
