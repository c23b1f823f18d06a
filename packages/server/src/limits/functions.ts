/** Bounds of functions and of the processes that run them. Units are last in each name. */
import { KiB, MiB } from './units.ts'

// Function hosts
/** Processes that run functions, unless the configuration says otherwise. */
export const hostsDefault = 2
export const hostsMost = 16
/** Resident memory at which a host is killed. */
export const hostMemoryBytes = 512 * MiB
/** A runtime with an application's packages needs this much before it runs anything. */
export const hostMemoryBytesLeast = 128 * MiB
/** Invocations that run in one host at a time. */
export const hostInvocationsMax = 100
/** Invocations that wait for a host; beyond it they are refused. */
export const hostWaitingMax = 1000
/** How long an invocation waits for a host before it is refused: no host starts, or all are busy. */
export const hostWaitMs = 5000
/**
 * So many hooks before writes go to one host before others share them: hooks are short, and those of one tick cost one
 * packet and wake one process.
 */
export const hostHooksGathered = 64
/**
 * An invocation that has lasted this long gets a timer for its deadline and watches whether its caller leaves. Most do
 * not last, and the runtime creates the signal of a request when it is first read, which costs as much as a short
 * function.
 */
export const hostAbortWatchMs = 20
/** The code of an application with its packages loads in far less. */
export const hostLoadMs = 15_000
/** A host that begins nothing in this time, although it could run, is blocked: its event loop runs other code. */
export const hostAnswerMs = 20
/** After its deadline, an invocation has this long to react to its signal before its host is killed. */
export const hostGraceMs = 1000
/** An idle host that is blocked for this long is killed. */
export const hostBlockedMs = 5000
/** The memory and the progress of hosts are read this often while they run functions, and while they are idle. */
export const hostWatchBusyMs = 10
export const hostWatchIdleMs = 1000
/** Restarts of hosts that end at once are delayed, twice as long each time. */
export const hostRestartMs = 100
export const hostRestartMsMax = 10_000
/** A host that lived this long did not fail at once. */
export const hostStableMs = 10_000
/** Characters of messages between the server and a host that are sent as one. */
export const hostPacketChars = 64 * KiB
/** Chunks of a streamed result that are sent before the first is read. */
export const hostStreamWindow = 16

// Data between a function and the server
/** The JSON of a result, or one value of a stream. */
export const functionResultBytesMax = 8 * MiB
/** The body of a request that a function serves, if it declares `rawBody`. */
export const functionRawBodyBytesMax = 32 * MiB
/** The body of a request of a function to the server. */
export const functionRequestBytesMax = 64 * MiB
/** Refusals of the caller's requests that an invocation remembers; older ones are opaque to the caller. */
export const functionRefusalsMax = 100
/** Requests of one invocation to the server that are under way at a time; others wait. */
export const functionRequestsMax = 64

// Log lines of functions
/** Lines per second of one host; beyond it they are dropped and counted. */
export const functionLogLinesPerSecond = 200
/** Characters of a message and of the JSON of its fields. */
export const functionLogCharsMax = 8 * KiB
/** Lines that a node keeps for operators: of one function, and of all. */
export const recentLinesOfFunctionMax = 1000
export const recentLinesOfFunctionBytesMax = MiB
export const recentLinesMax = 10_000
export const recentLinesBytesMax = 8 * MiB
/** Lines of one response, unless the request says otherwise, and at most; and their bytes in memory. */
export const recentLinesListed = 100
export const recentLinesListedMax = 1000
export const recentLinesListedBytes = MiB
/** How often `plinth functions logs --follow` asks for more. */
export const functionLogPollMs = 1000

// Hooks before writes
/** For the hooks of one write. */
export const beforeTimeoutMs = 500
/** For the hooks of a request with several writes. */
export const beforeTimeoutMsMax = 2000
/** Functions that may cause each other's runs, one by a write of the other. */
export const beforeDepthMax = 8
/** Hooks that delay a write longer than this are slow: most writes take less. */
export const beforeSlowSeconds = 0.001
/** Calls whose median is taken. */
export const beforeSamples = 100
/** Warnings about the hooks of one table have at least this distance. */
export const beforeWarningMs = 60_000

// Functions that callers invoke
/** Unless the function declares another limit. */
export const functionTimeoutMs = 30_000
export const functionTimeoutMsMax = 15 * 60_000
/** Bytes of the JSON that a caller sends to a function. */
export const functionInputBytesMax = MiB
/** A streamed response without values for this long gets a comment, so that no proxy closes the connection. */
export const functionKeepAliveMs = 15_000
/** The JSON Schema of an input; a larger one is not shown to clients. */
export const functionSchemaCharsMax = 64 * KiB
export const functionNameCharsMax = 64
export const functionPathCharsMax = 256

// Secrets
/** Keys and certificates are far smaller. */
export const secretValueBytesMax = 64 * KiB
export const secretsMax = 1000
/** Shorter values occur in texts by chance, so they are not redacted. */
export const secretRedactedCharsMin = 6
/** How long a node may serve a secret that was changed through another node. */
export const secretsCachedMs = 10_000

/** Time for the rule of a shadow run and all of its callers; rules are evaluated for each request. */
export const shadowRuleTimeoutMs = 2_000
/** Memory of the process of a shadow run: an empty host has about 100 MiB. */
export const shadowHostBytes = 256 * MiB
/** Shadow runs at the same time; each is a process. */
export const shadowRunsMax = 2
export const shadowSourceCharsMax = 20_000
export const shadowCallersMax = 20
/** Records that a shadow run compares. */
export const shadowRowsMax = 1000
/** Ids of changed records in its result, for each caller. */
export const shadowIdsMax = 20
/** Of these, records whose deciding clauses are in the result: one read each, and one more for each `exists`. */
export const shadowExplainedMax = 10
