export interface FrameParts {
  payload: Buffer;
  /** 1 text, 2 binary, 8 close, 9 ping, 0 continuation. */
  opcode?: number;
  final?: boolean;
  masked?: boolean;
  /** Bytes of the length field beyond the first: the shortest that fits unless given. */
  lengthForm?: 0 | 2 | 8;
}

/** Encodes one WebSocket frame. */
export function frame({ payload, opcode = 1, final = true, masked = false, lengthForm }: FrameParts): Buffer {
  const form = lengthForm ?? (payload.length < 126 ? 0 : payload.length < 65_536 ? 2 : 8);
  const header = Buffer.alloc(2 + form);
  header[0] = (final ? 0x80 : 0) | opcode;
  header[1] = (masked ? 0x80 : 0) | (form === 0 ? payload.length : form === 2 ? 126 : 127);
  if (form === 2) header.writeUInt16BE(payload.length, 2);
  if (form === 8) header.writeBigUInt64BE(BigInt(payload.length), 2);
  if (!masked) return Buffer.concat([header, payload]);
  const mask = Buffer.from([0x12, 0x34, 0x56, 0x78]);
  return Buffer.concat([header, mask, payload.map((byte, i) => byte ^ (mask[i % 4] ?? 0))]);
}
