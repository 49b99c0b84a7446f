import type { ExecutionRequest } from "./core/execution-request.ts";
import { type ExecutionRecord, isTerminal, type TerminalRecord } from "./core/record.ts";
import { type Expectation, terminalRecordFaults } from "./core/terminal-record.ts";
import { RecordRejectedError } from "./errors.ts";

/**
 * A final record, if it may be believed: it is of this id, its receipt tells the same end, names one node, sandbox and tool,
 * and did not complete before it started; a success has a receipt, and shown output an identity. With the request, version,
 * mote, tool, inputs and sizes are compared, too. Successful or not is no matter here.
 *
 * @param request as {@link parseExecutionRequest} reads it from the exact bytes that were sent
 * @throws {@link RecordRejectedError} (`CELLKIT_EXECUTION_RECORD_REJECTED`) with every fault
 */
export function acceptTerminalRecord(
  record: ExecutionRecord,
  id: string,
  request?: ExecutionRequest,
): TerminalRecord {
  return acceptRecord(record, id, { apiVersion: request?.apiVersion, request });
}

/** {@link acceptTerminalRecord}, also with no more of a request than its version. */
export function acceptRecord(record: ExecutionRecord, id: string, expected: Expectation): TerminalRecord {
  const faults = terminalRecordFaults(record, id, expected);
  if (!isTerminal(record) || faults.length > 0) throw new RecordRejectedError(id, faults);
  return record;
}
