/** Where nobody listens: a port that was free a moment ago may be somebody's by now, this one is given to nobody. */
export const nobodysAddress = { host: "127.0.0.1", port: 1 } as const;
