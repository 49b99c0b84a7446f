#!/usr/bin/env node
// The `cellkit` command.
import { packageVersion, runCommand } from "@cellkit/daemon";
import { commands } from "./command-list.ts";

await runCommand({ name: "cellkit", version: packageVersion(import.meta.url), commands });
