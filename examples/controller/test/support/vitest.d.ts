import "vitest";

declare module "vitest" {
  interface ProvidedContext {
    size: "sample" | "long";
    seed: number;
  }
}
