/** What a deployment may hold. Numbers that a reader enforces before it keeps anything in memory. */

const mebibyte = 1024 * 1024;

/** A manifest. It carries `vars`, so it has room for them; 1 MiB. */
export const maxManifestBytes = mebibyte;

/** A pointer: four members; 4 KiB. */
export const maxPointerBytes = 4096;

/** One module; 64 MiB, which is far above what a Worker loads in reasonable time. */
export const maxModuleBytes = 64 * mebibyte;

/** All modules of a deployment together; 128 MiB, since a node holds them in memory while it starts. */
export const maxTotalBytes = 128 * mebibyte;

/** How many modules a deployment has at most. */
export const maxModuleCount = 1000;

/** A Wrangler configuration file; 1 MiB. */
export const maxConfigBytes = mebibyte;
