/** What a request is answered with. */
import type { RequestRefusal } from "../errors.ts";
import type { OpenObject } from "../store/object-file.ts";
import { type XmlContent, xmlDocument } from "./xml.ts";

/** An answer before it is written to the socket. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body?: string | Uint8Array | { object: OpenObject; start: number; end: number };
}

/** 200 with an XML document. */
export function xmlAnswer(name: string, content: XmlContent): Answer {
  return { status: 200, headers: { "content-type": "application/xml" }, body: xmlDocument(name, content) };
}

/** A refusal in S3's form. */
export function refusalAnswer(refusal: RequestRefusal, requestId: string): Answer {
  return {
    status: refusal.status,
    headers: { "content-type": "application/xml" },
    body: xmlDocument("Error", [
      ["Code", refusal.s3Code],
      ["Message", refusal.message],
      ["RequestId", requestId],
    ]),
  };
}
