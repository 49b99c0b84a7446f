// A dispatcher in a process of its own, so that it can be killed. Started by dispatcherProcess and told everything over IPC.
import { dispatcher, type ScriptedDispatcher } from "../dispatcher/dispatcher.ts";
import type { Command, CommandMessage, Reply } from "./messages.ts";

let served: ScriptedDispatcher | undefined;

async function obey(command: Command): Promise<void> {
  if (command.kind === "start") {
    const onDeath = () => process.kill(process.pid, "SIGKILL");
    served = await dispatcher({ ...command.options, onDeath });
    return;
  }
  switch (command.kind) {
    case "fault":
      return served?.fault(command.match, command.fault, command.options);
    case "heal":
      return served?.heal();
    case "refuse":
      return served?.refuse();
    case "change":
      return served?.change(command.node);
    case "finish":
      return served?.finish(command.id, command.end);
    case "calls":
      return;
  }
}

function send(reply: Reply): void {
  process.send?.(reply, undefined, undefined, () => undefined);
}

process.on("message", (message: CommandMessage) => {
  const { sequence, command } = message;
  obey(command).then(
    () => {
      const calls = command.kind === "calls" ? (served?.calls ?? []) : [];
      send({ sequence, kind: "done", origin: served?.origin ?? "", calls });
    },
    (error: unknown) => send({ sequence, kind: "failed", message: String(error) }),
  );
});
// Whoever started it is gone: so is it.
process.on("disconnect", () => process.exit(0));
