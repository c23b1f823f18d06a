/** The numbers of jobs, and of backups. Each as in `limits`. */

/** A job's lease while it runs, renewed at a third of it: how soon another node may go on after one that died. */
export const jobLeaseMs = 30_000
/** What the clocks of nodes may differ by: whoever is late must still find that the job was done. */
export const jobClockSkewMs = 2000
/** Nodes begin up to a tenth of the interval late, and at most this, so that they do not all ask at once. */
export const jobJitterMaxMs = 5000
/** A job that has not ended is told to, and others may do it: some thousand times what any takes. */
export const jobRunMaxMs = 15 * 60 * 1000
/** How long a server that ends waits for jobs that were told to. */
export const jobDrainMs = 10_000

// Backups
/** How long writes wait for a backup to begin, at most: opening a few dozen files takes milliseconds. */
export const backupPauseMs = 2000
/** Attempts at a moment, where the machine is so busy that one was over too soon. */
export const backupPauseAttemptsMax = 5
/** A lease on released files ends after this without a renewal: how long a backup that died keeps files. */
export const backupLeaseMs = 60_000
/** Three attempts fit into a lease. */
export const backupLeaseRenewMs = 20_000
/** Leases at once; each is a row that every removal of files reads. */
export const backupLeasesMax = 16
/** Pieces in which files are read and written. */
export const backupChunkBytes = 1024 * 1024
/** Pages copied between looks at anything else. */
export const backupPagesPerStep = 1000
/** What says what the archive is: a few numbers and two sealed secrets. */
export const backupHeadBytesMax = 64 * 1024
/** Names that tell of a file's name at more length than this are no names of ours. */
export const backupPathCharsMax = 1024
/** Guesses cost as much as the hash makes them; words of this length are not found by trying. */
export const passphraseCharsMin = 12

/** Findings of one kind that `plinth doctor` prints; a damaged database has thousands that say the same. */
export const doctorFindingsMax = 20
