/** Bounds of requests and responses: records, filters, bodies, rate limits, shutdown. Units are last in each name. */
import { KiB, MiB } from './units.ts'

// Database
export const batchOperationsMax = 500
/** Lists that a transaction checks; each runs its query within the transaction. */
export const transactionListsMax = 50
export const batchByFilterRecordsMax = 500
/** Default size limit of a response with records: clients can parse this much at once. */
export const responseBytesMax = 8 * MiB
/** Part of it for the envelope around the items: a cursor of `cursorCharsMax` and a few members. */
export const responseEnvelopeBytes = 16 * KiB
/** A response below this is serialized in one step: about a millisecond. */
export const quickResponseBytes = 256 * KiB
/** Initial bytes of the buffer in which rows are written as JSON: those of a page, as a rule. */
export const encodedRowsMinBytes = 64 * KiB
/** A buffer that large pages have grown beyond this is not kept. */
export const encodedRowsKeptBytes = MiB
/**
 * Large responses built concurrently, each of which needs a few times its size in memory meanwhile; and those that
 * wait: 429 beyond the share of a caller, 503 beyond the length.
 */
export const largeResponses = { running: 4, waiting: 1000, waitingPerCaller: 250, waitMs: null }
/** Bounds of the configured limit: a page of small records, and what a process has memory for. */
export const responseBytesLeast = 64 * KiB
export const responseBytesMost = 64 * MiB
export const orFilterConditionsMax = 5
export const filterConditionsMax = 100
export const inValuesMax = 1000
/** Relations of one request: each is a statement over the rows of the level above it. */
export const includedRelationsMax = 10
/** Backward records of one request. Beyond it a request is refused, since a list that was cut would look complete. */
export const includedRecordsMax = 1000
/** Levels of relations: `include` within `include`, and relations that a condition goes through. */
export const relationDepthMax = 3
/** Relations that the conditions of a group go through in all: each is a sub-select per row. */
export const filterRelationsMax = 10
/** Half the Earth's circumference, 20,015 km: no two places are farther apart. */
export const nearMetersMax = 20_016_000
/** Corners of a polygon, and of all polygons of a group: SQLite compiles 200 sides in 20 ms, 400 in 110 ms. */
export const polygonPointsMax = 100
export const filterPolygonPointsMax = 200
/** Ranges of an index that cover an area: with 16, about a third of the places found are outside a circle. */
export const geoRangesMax = 16
/** Part of the Earth beyond which a scan of the table is as fast as an index: 5 %, a circle of some 2,500 km. */
export const indexedShareMax = 0.05
export const listLimitDefault = 100
/** More is clamped, not refused. */
export const listLimitMax = 1000
/** Characters of a value in a preview: a few lines of a cell. More is read with the record. */
export const previewCharsMax = 4096
/** Clauses of one explanation. A rule that people write has some ten; a longer explanation is cut and says so. */
export const ruleClausesMax = 500
/** Characters of the text of one clause: a condition with a list of a few hundred ids would fill the answer. */
export const clauseTextCharsMax = 1000
/** Parameters of the statement that an explanation shows. */
export const clauseParametersMax = 100
/** Values of a list in the text of a clause. */
export const clauseListValuesMax = 10
/** Characters of a text, and of the JSON of a value, that a clause shows of a row. */
export const clauseValueCharsMax = 256
/** Statements of one read that `explain` analyzes. */
export const explainedStatementsMax = 20
export const recordIdCharsMax = 64
export const instanceIdCharsMax = 128
export const fieldNameCharsMax = 128
export const searchWordsMax = 20
/** Undeclared fields that a page reads one by one; with more of them it reads the complete stored object. */
export const projectedMembersMax = 32
/** Longest highlight tag: an element with a class or two; each stands in a response five times per field. */
export const highlightTagCharsMax = 200
/** Marks in the snippet of a field, and characters of the text around them. */
export const snippetMarksMax = 5
export const snippetCharsMax = 300
/** Of these, about how many stand before the first mark. */
export const snippetLeadChars = 60
/** A search text of 20 words never needs more; bounds the tokenizer's work. */
export const searchTextCharsMax = 2 * KiB
/** A weight of more would let one field outvote all others in any case. */
export const searchWeightMax = 100
/**
 * Characters of a field, and of all fields of a record, that searches with a ranking look at: up to 30 ms of tokenizing
 * for a write, and for the highlights of each result. A text of so many characters has more words than are searched.
 */
export const searchedCharsMax = 50_000
export const searchedRecordCharsMax = 100_000
/**
 * Terms of a record in the index: an insert of so many takes SQLite some 10 ms, on the event loop. A page of prose has
 * about 300 different words.
 */
export const termsPerRecordMax = 5000
/** Code points of a word that are compared, in records and in searches: engines bound the length of lexemes. */
export const indexedWordCharsMax = 255
/** Code points from one term of a long text without spaces to the next, which overlap: every shorter part is in one. */
export const unspacedTermStep = 128
/** Code points of a searched text without spaces that are compared. It fits in the overlap of two terms. */
export const unspacedCharsMax = 100
/** Shortest part of a word that is found within it, and the length of the parts in the index. */
export const wordPartChars = 3
/** The same for texts without spaces, where single characters are terms as well. */
export const unspacedPartChars = 2
/** Parts of a searched text that narrow down its candidates. The candidates are compared with all of it. */
export const partsLookedUpMax = 6
/** Shortest words with one and with two typos, in code points: shorter ones match too much. */
export const oneTypoCharsMin = 4
export const twoTyposCharsMin = 8
/** Longer words are identifiers rather than words; bounds the time of a comparison. */
export const typoCharsMax = 64
/**
 * Words of a record in the dictionary of a table that corrects typos: a record of 2,000 words that no other has takes
 * SQLite some 20 ms to insert and 45 ms to replace, on the event loop.
 */
export const dictionaryWordsPerRecordMax = 2000
/** Similar words of the dictionary that are read at a time, and compared with the searched ones in milliseconds. */
export const typoWordsRead = 2048
/** Time limit for reading them: a writer may add any number of words that are similar to one. */
export const typoSearchMs = 5000
/** One sort key per field is plenty; each adds a segment to a cursor's query. */
export const sortFieldsMax = 8
/** A cursor is sent in the URL; one that sorts by longer texts contains the record's id instead of its values. */
export const cursorCharsMax = 12 * KiB
/** Nesting of rule filters; far beyond any written rule, far below the stack and SQLite's 1,000. */
export const exprDepthMax = 32
/** An asynchronous rule that has not resolved by then denies: callers wait for it. */
export const asyncRuleTimeoutMs = 5000
/** PostgreSQL truncates identifiers at 63 bytes; the rest is for prefixes and suffixes. */
export const declaredNameCharsMax = 48
/** SQLite refuses more than 2,000 columns; wide tables this far are a design mistake. */
export const tableFieldsMax = 500
export const idempotencyKeyCharsMax = 255
export const idempotencyRetentionMs = 24 * 60 * 60 * 1000

// Aggregates
/** Keys of the groups, and measures. */
export const aggregateKeysMax = 4
export const aggregateMeasuresMax = 10
/** Conditions on groups. */
export const havingConditionsMax = 20
/** Characters of a name that a request gives to a key or a measure. */
export const aggregateNameCharsMax = 64
export const aggregateGroupsDefault = 100
/** A chart or a page of facets needs fewer; more is clamped, not refused. */
export const aggregateGroupsMax = 1000
/** Time limit of the scan: a chart that takes longer needs a filter, an index, or counts of its own. */
export const aggregateTimeoutMs = 2000
/** Bytes of texts in a result: long keys end it early, as large records end a page. */
export const aggregateTextBytesMax = MiB
/** Widths of a bucket, so that its lower bounds are numbers that differ. */
export const bucketWidthMin = 1e-9
export const bucketWidthMax = 1e15

/** Results kept until the next write of their table. */
export const aggregatesCachedMax = 2000
export const aggregatesCachedBytesMax = 16 * MiB
/** A larger result is computed each time. */
export const aggregateCachedBytesMax = 512 * KiB

// HTTP
export const jsonBodyBytesMax = MiB
/**
 * The listener's bound on bodies: a multiple of the largest file of any bucket, and at least the minimum, so that the
 * endpoint's own 413 with its explanation comes first.
 */
export const listenerBodyFactor = 4
export const listenerBodyBytesMin = 1024 * MiB
export const jsonDepthMax = 64
/** A JSON body below this is parsed in one step: a few milliseconds where it is dense, such as lists of numbers. */
export const quickBodyBytes = 256 * KiB
/** Characters of a larger body that are parsed in one step. */
export const parsePieceChars = 64 * KiB
/** Items of one array of a body: as many as a megabyte of JSON holds, twice. Growing a longer one takes too long. */
export const bodyItemsMax = 1_000_000
/** An error names at most this many fields, which bounds the size of the response. */
export const fieldErrorsMax = 100
/** Ours are below 1 KiB with 4 KB of claims in base64 below 8 KiB; longer is refused before any parsing. */
export const accessTokenCharsMax = 8 * KiB
export const serviceKeyCharsMax = 512
/** 16 random characters are beyond guessing over a network; shorter ones tend to be words. */
export const serviceKeyCharsMin = 16
/** A secret can be guessed offline: 32 characters are 24 random bytes in base64. */
export const secretCharsMin = 32
/** Verified tokens kept until they expire; about 1 KiB each. */
export const tokenCacheEntriesMax = 10_000
export const accessTokenLifetimeMs = 15 * 60 * 1000
/** argon2id hashes any length, so the upper bound only limits the size of requests. */
export const passwordCharsMin = 8
export const passwordCharsMax = 256
/** Addresses whose windows are remembered at once; beyond it the oldest window is forgotten. */
export const rateLimitKeysMax = 100_000
export const rateLimitWindowMs = 60_000
/** Requests per IP and window. */
export const rateLimitRequests = {
  db: 1000,
  storage: 500,
  auth: 60,
  signin: 10,
  signup: 10,
  mail: 5,
  push: 100,
  events: 100,
  functions: 1000,
  /**
   * New instances of dynamic namespaces, each a separate database on SQLite (three file handles, about 50 KiB): a user
   * creates a project now and then, but a script must not fill the disk with empty ones.
   */
  instances: 100,
  global: 10_000_000,
} as const
/** Groups with another window: an hourly window keeps one mailbox from being flooded with mails over a day. */
export const rateLimitWindowsMs: { readonly [Group in keyof typeof rateLimitRequests]?: number } = {
  mail: 60 * 60 * 1000,
  instances: 60 * 60 * 1000,
}
/** Development is one person reloading a page, not a crowd. */
export const rateLimitDevelopmentFactor = 100
/** In-flight requests get this long after SIGTERM before their connections are closed. */
export const drainTimeoutMs = 10_000
/** Deadline of a complete shutdown; most supervisors kill a process 30 seconds after SIGTERM. */
export const closeMs = 20_000
/** Deadlines within it for jobs and rooms, and for requests; what is not done by then is abandoned. */
export const closeRoomsMs = 7000
export const closeRequestsMs = 18_000
/** Seconds without traffic before a kept-alive connection is closed; also the slow-request bound. */
export const connectionIdleSeconds = 60

/**
 * From this size on a text is sent as one chunk: once its handler has waited, the runtime would send each name and
 * value of the headers in a system call of its own.
 */
export const chunkedTextBytes = 15 * KiB
/** JSON responses from this size on are sent in chunks and counted until the client has read them. */
export const largeResponseBytes = 256 * KiB
/** Chunk size of such a response. */
export const responsePieceBytes = 64 * KiB
/** Unread bytes of large responses over all connections; beyond it stalled responses are aborted. */
export const unreadResponseBytesMax = 128 * MiB
/** A response without progress for this long counts as stalled: no client needs so long for 64 KiB. */
export const stalledResponseMs = 2000
/** Share of the file handle limit that requests may use before stalled downloads get a shorter timeout. */
export const pendingRequestsShare = 1 / 4
/** That timeout, instead of `connectionIdleSeconds`. */
export const crowdedIdleSeconds = 5
/** Downloads tracked for the shorter timeout. */
export const rememberedDownloadsMax = 4096

// Overload: when expensive requests wait for a later round of the event loop, and when they are refused
/**
 * Time of a round of the event loop after which further expensive requests wait for the next one. A point read that
 * arrives meanwhile waits for that and for one expensive step, which is at most `slowReadMs`: half of the 50 ms that
 * its 99th percentile may have. As long as a batch of reads (`readBatchMs`).
 */
export const expensiveSliceMs = 5
/** How long an expensive request waits: a burst is served, such as a page full of charts or parallel batches. */
export const expensiveWaitMs = 5000
/**
 * Where every expensive request has waited a quarter of a second for a second, as the slow reads of
 * `slowReadsStanding`, more are coming than the server can do; fifty clients that send one transaction after the other
 * are not. A caller then has at most two requests waiting, one that is next and one behind it, and further ones are
 * refused at once; a request that waits among those of many callers is refused in time for another attempt.
 */
export const expensiveStanding = { targetMs: 250, afterMs: 1000, waitMs: 500, waitingPerCaller: 2 }
/** Maximum expensive requests that wait: about as many as are served in `expensiveWaitMs` at 5 ms each. */
export const expensiveWaitingMax = 1024
/** Of these, the maximum of a caller; beyond it they are rejected with 429. */
export const expensiveWaitingPerCallerMax = 256
/** `Retry-After` of a refused request is drawn from 1 to this, so that clients do not return all at once. */
export const retryAfterSecondsMax = 3
