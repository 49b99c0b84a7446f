// A DNS server with one name, on UDP: as much of RFC 1035 as a resolver needs to ask for addresses.
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";

/** How it answers. */
export type DnsState =
  | { readonly kind: "addresses"; readonly addresses: readonly string[] }
  /** IPv4 addresses, and SERVFAIL for the question about IPv6 ones. */
  | { readonly kind: "half"; readonly addresses: readonly string[] }
  /** Addresses of this name, and no other name. */
  | { readonly kind: "only"; readonly name: string; readonly addresses: readonly string[] }
  /** No such name. */
  | { readonly kind: "gone" }
  /** SERVFAIL. */
  | { readonly kind: "failing" }
  /** Nothing comes back. */
  | { readonly kind: "silent" };

const typeA = 1;
const typeAaaa = 28;
/** Fine, a failure, no such name. */
const codes = { addresses: 0, only: 3, half: 2, failing: 2, gone: 3 } as const;

/** A server that says of every name what the test wants. */
export class DnsServer implements AsyncDisposable {
  readonly #socket: Socket;
  state: DnsState = { kind: "gone" };
  /** Questions that came. */
  questionCount = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("message", (question, { port, address }) => {
      this.questionCount += 1;
      const answer = this.#answer(question);
      if (answer !== undefined) socket.send(answer, port, address);
    });
  }

  static async open(): Promise<DnsServer> {
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return new DnsServer(socket);
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
  }

  #answer(question: Buffer): Buffer | undefined {
    const { state } = this;
    if (state.kind === "silent") return undefined;
    const end = question.indexOf(0, 12) + 5;
    const type = question.readUInt16BE(end - 4);
    const isMeant = state.kind !== "only" || nameOf(question) === state.name;
    const records =
      "addresses" in state && isMeant ? state.addresses.filter((each) => typeOf(each) === type) : [];
    const isFine = state.kind === "only" ? isMeant : state.kind === "half" && type === typeA;
    const code = isFine ? 0 : codes[state.kind];
    const head = Buffer.alloc(12);
    question.copy(head, 0, 0, 2);
    // An answer, recursion available, and the code.
    head.writeUInt16BE(0x8180 | code, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    return Buffer.concat([head, question.subarray(12, end), ...records.map((each) => record(type, each))]);
  }
}

function nameOf(question: Buffer): string {
  const labels: string[] = [];
  for (let at = 12; question[at] !== 0; at += 1 + (question[at] ?? 0))
    labels.push(question.toString("latin1", at + 1, at + 1 + (question[at] ?? 0)));
  return labels.join(".").toLowerCase();
}

function typeOf(address: string): number {
  return address.includes(":") ? typeAaaa : typeA;
}

/** Only `::1`-like tails are written of an IPv6 address. */
function record(type: number, address: string): Buffer {
  const data =
    type === typeA
      ? Buffer.from(address.split(".").map(Number))
      : Buffer.concat([Buffer.alloc(14), Buffer.from(address.slice(2).padStart(4, "0"), "hex")]);
  const head = Buffer.alloc(12);
  // The name is the question's; no time to live.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
