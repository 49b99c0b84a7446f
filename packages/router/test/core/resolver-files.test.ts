import { describe, expect, it } from "vitest";
import { hostsAddresses, parseSearchRules, wholeNames } from "../../src/core/resolver-files.ts";

const kubernetes =
  "# made by kubelet\nsearch celln.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5 edns0\n";

describe("the file of the resolver", () => {
  it.each([
    ["", [], 1],
    ["nameserver 10.0.0.1\n", [], 1],
    [kubernetes, ["celln.svc.cluster.local", "svc.cluster.local", "cluster.local"], 5],
    ["domain example.org\n", ["example.org"], 1],
    ["search a b\ndomain c ; the last one counts\n", ["c"], 1],
    ["domain c\nsearch\ta.\tb", ["a", "b"], 1],
    ["options ndots:0\noptions timeout:1 # not the dots\n", [], 0],
    ["options ndots:99\n", [], 15],
    ["options ndots:many\n#search x\n;search y\n", [], 1],
  ])("%j", (text, search, ndots) => {
    expect(parseSearchRules(text)).toEqual({ search, ndots });
  });
});

describe("a name is asked for", () => {
  const rules = parseSearchRules(kubernetes);
  it("within its search list first where it has few dots", () => {
    expect(wholeNames("dispatcher-0.dispatchers", rules)).toEqual([
      "dispatcher-0.dispatchers.celln.svc.cluster.local",
      "dispatcher-0.dispatchers.svc.cluster.local",
      "dispatcher-0.dispatchers.cluster.local",
      "dispatcher-0.dispatchers",
    ]);
  });

  it("as it is first where it has as many dots as it takes", () => {
    expect(wholeNames("a.b", { search: ["x"], ndots: 1 })).toEqual(["a.b", "a.b.x"]);
    expect(wholeNames("a", { search: ["x"], ndots: 0 })).toEqual(["a", "a.x"]);
    expect(wholeNames("a", { search: ["", "x"], ndots: 1 })).toEqual(["a.x", "a"]);
  });

  it("as it is alone where a dot ends it", () => {
    expect(wholeNames("a.b.", rules)).toEqual(["a.b"]);
  });
});

describe("the file of hosts", () => {
  const hosts =
    "127.0.0.1\tlocalhost # a\n::1 localhost ip6-localhost\n#10.0.0.1 db\n10.0.0.2 DB.local db\n10.0.0.2 db\n";
  it.each([
    ["localhost", ["127.0.0.1", "::1"]],
    ["ip6-localhost", ["::1"]],
    ["db", ["10.0.0.2"]],
    ["db.LOCAL.", ["10.0.0.2"]],
    ["a", []],
    ["127.0.0.1", []],
  ])("gives %s the addresses %j", (name, addresses) => {
    expect(hostsAddresses(hosts, name)).toEqual(addresses);
  });
});
