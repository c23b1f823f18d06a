/** Limits of jobs and backups, and of what operators see of a running server. */
import { KiB, MiB } from './units.ts'

/** Lease of a running job, renewed at a third of it: how soon another node takes over after a crash. */
export const jobLeaseMs = 30_000
/** Tolerated clock skew between nodes: a node that is late must find that the job was done. */
export const jobClockSkewMs = 2000
/** Jitter: nodes start up to a tenth of the interval late, at most this, so that they do not all query at once. */
export const jobJitterMaxMs = 5000
/** Longest run of a job: some thousand times the usual duration. Then it is aborted and other nodes may run it. */
export const jobRunMaxMs = 15 * 60 * 1000
/** Time that shutdown waits for aborted jobs. */
export const jobDrainMs = 10_000

// Log lines
/** Log lines in memory of a node: some 20,000 requests. */
export const recentLogBytesMax = 4 * MiB
export const logLinesListed = 100
export const logLinesListedMax = 500
/** Nodes whose lines are merged, of which a cursor has the positions. */
export const logNodesMax = 64
/** Lines of another node, and their bytes, in an answer to a node that searches those of all. */
export const peerLogLinesMax = 200
export const peerLogBytesMax = 256 * KiB
/** A text that lines are searched for. */
export const logTextCharsMax = 200

// Backups
/** Backups of a page; the head of each is read. */
export const backupsListed = 20
export const backupsListedMax = 100
/** Of the output of `plinth backup`: one or two sentences. */
export const backupMessageCharsMax = 2000
/** Of a stored verification: the first problems, each a sentence. */
export const verificationProblemsMax = 50
/** A stored verification that is larger was not written by the command. */
export const verificationBytesMax = 64 * 1024
/** Longest write pause of a backup: opening a few dozen files takes milliseconds. */
export const backupPauseMs = 2000
/** Attempts to start a backup, for machines so busy that a pause expires too early. */
export const backupPauseAttemptsMax = 5
/** Lease on released files: how long a killed backup keeps them. */
export const backupLeaseMs = 60_000
/** Three attempts fit into a lease. */
export const backupLeaseRenewMs = 20_000
/** Concurrent leases; each is a row that every removal of files reads. */
export const backupLeasesMax = 16
/** Chunk size of file copies. */
export const backupChunkBytes = 1024 * 1024
/** Pages copied before yielding. */
export const backupPagesPerStep = 1000
/** The manifest of an archive: a few numbers and two sealed secrets. */
export const backupHeadBytesMax = 64 * 1024
/** Longest path in an archive; longer ones are not created by this program. */
export const backupPathCharsMax = 1024
/** Shortest passphrase. With the cost of the hash, passphrases of this length resist brute force. */
export const passphraseCharsMin = 12

/** Findings of one kind that `plinth doctor` prints; a damaged database has thousands of equal ones. */
export const doctorFindingsMax = 20
