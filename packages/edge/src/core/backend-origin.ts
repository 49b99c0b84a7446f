// The backend's address is fixed and literal: what no resolver, proxy variable or redirect can move.

/** Where the backend is. */
export interface BackendOrigin {
  /** `http://127.0.0.1:8788`, as given. */
  readonly origin: string;
  /** What `Host` says: `127.0.0.1:8788`. */
  readonly authority: string;
  /** The address alone, without brackets. */
  readonly host: string;
  readonly port: number;
}

const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const pattern = new RegExp(`^http://((127(?:\\.${octet}){3})|\\[(::1)\\]):([1-9]\\d{0,4})$`);

/**
 * Reads `http://`, a literal address of 127.0.0.0/8 or `[::1]`, and a port from 1 to 65 535. Nothing else may stand there:
 * no name, user, path, query or fragment. @returns undefined for anything else
 */
export function parseBackendOrigin(text: string): BackendOrigin | undefined {
  const match = pattern.exec(text);
  const port = Number(match?.[4]);
  if (match === null || port > 65_535) return undefined;
  return {
    origin: text,
    authority: text.slice("http://".length),
    host: (match[2] ?? match[3]) as string,
    port,
  };
}
