/** Starts a process, freezes it, prints its pid, and waits to be killed. */
import { localPlace } from "../../src/qualification/agent-connection.ts";

const place = localPlace({ command: "sh", args: ["-c", "echo $$; read -r line"] });
const link = await place.start({
  onLine: (line) => {
    link.signal("freeze");
    process.stdout.write(`${line}\n`);
  },
  onEnd: () => undefined,
});
