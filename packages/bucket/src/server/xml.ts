/** S3's XML, written and read. */
import { XMLParser } from "fast-xml-parser";
import { z } from "zod";
import { RequestRefusal } from "../errors.ts";

/** An element's content: text, elements in order, or nothing. */
export type XmlContent = string | number | boolean | readonly XmlElement[];
/** A named element. */
export type XmlElement = readonly [name: string, content: XmlContent];

/** A document with S3's namespace. */
export function xmlDocument(name: string, content: XmlContent): string {
  const body = render([name, content]);
  const withNamespace =
    name === "Error"
      ? body
      : body.replace(`<${name}`, `<${name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${withNamespace}`;
}

function render([name, content]: XmlElement): string {
  const inner = Array.isArray(content) ? content.map(render).join("") : escapeText(String(content));
  return `<${name}>${inner}</${name}>`;
}

/** Control characters become references, as Amazon S3 sends them; XML 1.0 has no better way. */
function escapeText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must be escaped
  return text.replace(/[&<>"\u0000-\u001f\u007f]/g, (character) => {
    switch (character) {
      case "&":
        return "&amp;";
      case "<":
        return "&lt;";
      case ">":
        return "&gt;";
      case '"':
        return "&quot;";
      default:
        return `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`;
    }
  });
}

const parser = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  trimValues: false,
  // The library drops references to control characters: a key would become another key. They are read below.
  processEntities: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
  isArray: (name) => name === "Object" || name === "Part",
});

const named: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Text with its references read, those to control characters too, which S3 writes in listings. A stray `&` is refused. */
const text = z.string().transform((raw, context) =>
  raw.replace(
    /&(?:#x([0-9a-fA-F]{1,6});|#(\d{1,7});|(amp|lt|gt|quot|apos);|)/g,
    (match, hex, decimal, name) => {
      if (name !== undefined) return named[name] ?? "";
      const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      if (point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)) return String.fromCodePoint(point);
      context.addIssue({ code: "custom", message: `${match} is no character` });
      return "";
    },
  ),
);

/** A text element; empty ones come as "". */
const deleteSchema = z.object({
  Delete: z.object({
    Quiet: z.string().optional(),
    Object: z.array(z.object({ Key: text, ETag: text.optional(), VersionId: text.optional() })),
  }),
});

const completeSchema = z.object({
  CompleteMultipartUpload: z.object({
    Part: z.array(z.object({ PartNumber: z.string().regex(/^\d{1,5}$/), ETag: text })),
  }),
});

/** The body of a multi-delete. @throws RequestRefusal MalformedXML */
export function parseDelete(xml: string): z.infer<typeof deleteSchema>["Delete"] {
  return parse(xml, deleteSchema).Delete;
}

/** The body that completes a multipart upload. @throws RequestRefusal MalformedXML */
export function parseComplete(xml: string): { partNumber: number; etag: string }[] {
  return parse(xml, completeSchema).CompleteMultipartUpload.Part.map(({ PartNumber, ETag }) => ({
    partNumber: Number(PartNumber),
    etag: ETag.replace(/^"(.*)"$/, "$1"),
  }));
}

function parse<T>(xml: string, schema: z.ZodType<T>): T {
  const refusal = (cause?: unknown) =>
    new RequestRefusal(
      400,
      "MalformedXML",
      "The XML of the body is not well-formed or not what this request takes.",
      {
        cause,
      },
    );
  if (xml.includes("<!")) throw refusal();
  try {
    return schema.parse(parser.parse(xml, true));
  } catch (error) {
    throw refusal(error);
  }
}
