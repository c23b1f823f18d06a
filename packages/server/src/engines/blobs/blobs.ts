/**
 * Port: immutable bytes under random names, written once, read in ranges, removed when nobody refers to them. Adapters
 * (`blobs-fs`, `blobs-s3`) own where they are kept; what an object is, who may have it and when a blob is garbage is
 * the callers' matter.
 */

export interface WriteOptions {
  /** More than this is refused with `BlobTooLargeError`, at the first byte beyond it. */
  readonly bytesMax: number
  /** The size the sender declared, where it is known: a body of another size is refused with `BlobSizeError`. */
  readonly size?: number
}

export interface WrittenBlob {
  /** In bytes. */
  readonly size: number
  /** Lower-case hex; the one hash, since MD5 beside it would take twice the time again and tell less. */
  readonly sha256: string
  /** The first bytes, up to `sniffBytes`, to tell the content's type by. */
  readonly head: Uint8Array
}

/** Bytes `start` to `end`, the latter not included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** Bytes of a blob: a part of a file, which the runtime sends without copying, or a stream of them. */
export type BlobSource =
  | { readonly kind: 'file'; readonly path: string; readonly start: number; readonly end: number }
  | { readonly kind: 'stream'; readonly stream: ReadableStream<Uint8Array> }

export interface ListedBlob {
  readonly id: string
  /** In bytes. */
  readonly size: number
  readonly modifiedMs: number
}

/**
 * Ids are texts of 1 to 64 letters, digits, `_` and `-`, made by the program and never used twice; anything else
 * throws. Every method rejects with `EngineError` `unavailable` where the store is away, full or broken.
 */
export interface Blobs {
  /**
   * Streams a body into a new blob and resolves once that is durable. Memory stays flat whatever the size, and a slow
   * store slows the sender. A chunk belongs to the store from when it is given. What the body throws is thrown on. A
   * write that fails leaves no blob, and at most something for `removeUnfinished`.
   */
  write(id: string, body: AsyncIterable<Uint8Array>, options: WriteOptions): Promise<WrittenBlob>
  /**
   * Bytes of a blob, which must have that many. Rejects with `BlobMissingError`. A stream that is not read to its end
   * must be cancelled, and fails where the store breaks off.
   */
  read(id: string, range: ByteRange): Promise<BlobSource>
  /** Removes blobs; a missing one is no error. Those before the one that fails may be gone. */
  remove(ids: readonly string[]): Promise<void>
  /** Every blob last written before the time, in any order, fetched page by page. */
  listOlderThan(beforeMs: number): AsyncIterable<ListedBlob>
  /**
   * Removes what writes that were begun before the time and never ended have left: temporary files, uploads in parts.
   * Gives their number.
   */
  removeUnfinished(beforeMs: number): Promise<number>
  /** Why nothing can be stored, in a sentence for an operator; null while it can. Never rejects. */
  findFault(): Promise<string | null>
  /** Lets go of every connection. What runs fails. */
  close(): Promise<void>
}

/** The body has more bytes than it may have. */
export class BlobTooLargeError extends Error {
  constructor(readonly bytesMax: number) {
    super(`The body has more than ${bytesMax} bytes`)
    this.name = 'BlobTooLargeError'
  }
}

/** The body ended before, or went on after, the size that was declared for it. */
export class BlobSizeError extends Error {
  constructor(
    readonly declared: number,
    readonly received: number,
  ) {
    super(`The body was declared to have ${declared} bytes`)
    this.name = 'BlobSizeError'
  }
}

/** There is no blob with this id. */
export class BlobMissingError extends Error {
  constructor(readonly id: string) {
    super('There is no such blob')
    this.name = 'BlobMissingError'
  }
}

const idShape = /^[\w-]{1,64}$/

/** Whether the text could be the id of a blob: what else lies in the store is not ours. */
export const isBlobId = (text: string): boolean => idShape.test(text)

/** Throws a `RangeError` for an id that was not made by the program: names never come from a caller. */
export function checkBlobId(id: string): void {
  if (!isBlobId(id)) throw new RangeError('A blob id is 1 to 64 letters, digits, _ or -')
}
