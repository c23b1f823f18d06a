/** Units of size. KB and MB are 1,024-based everywhere. */

export const KiB = 1024
export const MiB = 1024 * KiB
