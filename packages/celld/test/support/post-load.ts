// Non-idempotent POSTs without retries, small and large, whose effects the rooms count.
import { randomUUID } from "node:crypto";
import { Pool } from "undici";

const sizes = { small: 64, large: 200_000 } as const;
/** How many POSTs of each size are in flight at a time. */
const concurrency = { small: 6, large: 2 } as const;
const bodies = { small: Buffer.alloc(sizes.small, "s"), large: Buffer.alloc(sizes.large, "l") };

/** One POST that did not end with 200. */
export interface Failure {
  room: string;
  size: keyof typeof sizes;
  what: string;
}

/** POSTs that go on until {@link PostLoad.stop}; each goes to the node that `target` names when it begins. */
export class PostLoad {
  readonly failures: Failure[] = [];
  /** Acknowledged ids by room. */
  readonly acknowledged = new Map<string, Set<string>>();
  /** Acknowledged POSTs. */
  count = 0;
  target: string;
  readonly #rooms: readonly string[];
  readonly #pools = new Map<string, Pool>();
  #running = true;
  readonly #workers: Promise<void>[];

  /** @param target the origin of a node */
  constructor(target: string, rooms: readonly string[]) {
    this.target = target;
    this.#rooms = rooms;
    for (const room of rooms) this.acknowledged.set(room, new Set());
    this.#workers = (["small", "large"] as const).flatMap((size) =>
      Array.from({ length: concurrency[size] }, (_, index) => this.#work(size, index)),
    );
  }

  /** Lets the POSTs in flight end. */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#workers);
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
  }

  async #work(size: keyof typeof sizes, index: number): Promise<void> {
    for (let turn = index; this.#running; turn += 1) {
      const room = this.#rooms[turn % this.#rooms.length] ?? "";
      const id = randomUUID();
      const what = await this.#post(`/rooms/${room}/messages?id=${id}`, bodies[size]);
      if (what === undefined) {
        this.acknowledged.get(room)?.add(id);
        this.count += 1;
      } else this.failures.push({ room, size, what });
    }
  }

  async #post(path: string, body: Buffer): Promise<string | undefined> {
    try {
      const answer = await this.#pool().request({ method: "POST", path, body });
      const text = await answer.body.text();
      return answer.statusCode === 200 ? undefined : `${answer.statusCode} ${text.slice(0, 200)}`;
    } catch (error) {
      return String(error);
    }
  }

  #pool(): Pool {
    let pool = this.#pools.get(this.target);
    if (pool === undefined) {
      pool = new Pool(this.target, { connections: 16 });
      this.#pools.set(this.target, pool);
    }
    return pool;
  }
}
