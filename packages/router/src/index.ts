export { fnv1a64, walkFromChance, walkFromHash } from "./core/selection.ts";
