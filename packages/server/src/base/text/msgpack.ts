/**
 * MessagePack of JSON values: the same data model, so no binary data, extensions, NaN or keys other than text. What is
 * read comes from clients: every length is checked against the bytes that are left before anything is allocated.
 */

/** What JSON expresses, as `JSON.parse` returns it. */
export type PackedValue =
  | string
  | number
  | boolean
  | null
  | readonly PackedValue[]
  | { readonly [key: string]: PackedValue }

/** Writes values one after the other into one buffer, which grows and is used again. */
export class PackWriter {
  #bytes: Buffer
  #end = 0

  constructor(initialBytes = 4096) {
    this.#bytes = Buffer.allocUnsafe(initialBytes)
  }

  /** Discards what was written. */
  reset(): void {
    this.#end = 0
  }

  /** What was written since `reset`: a view, valid until the next call. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#end)
  }

  /** The head of an array; `length` values must follow. */
  array(length: number): void {
    this.#head(length, 0x90, 16, 0xdc)
  }

  value(value: PackedValue): void {
    switch (typeof value) {
      case 'number':
        this.#number(value)
        break
      case 'string':
        this.text(value)
        break
      case 'boolean':
        this.#byte(value ? 0xc3 : 0xc2)
        break
      default:
        if (value === null) this.#byte(0xc0)
        else if (isArray(value)) {
          this.array(value.length)
          for (const element of value) this.value(element)
        } else this.#map(value)
    }
  }

  text(text: string): void {
    // A unit takes at most three bytes.
    const bytesMax = text.length * 3
    this.#reserve(bytesMax + 5)
    if (bytesMax < 32) {
      // The head of a short text is one byte, so the text is written behind it without being measured first.
      const bytes = this.#bytes.write(text, this.#end + 1)
      this.#bytes[this.#end] = 0xa0 | bytes
      this.#end += 1 + bytes
    } else {
      this.#textHead(Buffer.byteLength(text))
      this.#end += this.#bytes.write(text, this.#end)
    }
  }

  #textHead(bytes: number): void {
    if (bytes < 32) this.#byte(0xa0 | bytes)
    else if (bytes < 0x100) {
      this.#byte(0xd9)
      this.#byte(bytes)
    } else if (bytes < 0x10000) this.#uint16(0xda, bytes)
    else this.#uint32(0xdb, bytes)
  }

  #map(value: { readonly [key: string]: PackedValue }): void {
    const keys = Object.keys(value)
    this.#head(keys.length, 0x80, 16, 0xde)
    for (const key of keys) {
      this.text(key)
      this.value(value[key] as PackedValue)
    }
  }

  #head(length: number, short: number, shortMax: number, long: number): void {
    if (length < shortMax) this.#byte(short | length)
    else if (length < 0x10000) this.#uint16(long, length)
    else this.#uint32(long + 1, length)
  }

  #number(value: number): void {
    if (Number.isInteger(value) && value >= -0x80000000 && value <= 0xffffffff && !Object.is(value, -0)) {
      if (value < 0) this.#negative(value)
      else if (value < 0x80) this.#byte(value)
      else if (value < 0x100) {
        this.#byte(0xcc)
        this.#byte(value)
      } else if (value < 0x10000) this.#uint16(0xcd, value)
      else this.#uint32(0xce, value)
      return
    }
    this.#byte(0xcb)
    this.#reserve(8)
    this.#end = this.#bytes.writeDoubleBE(value, this.#end)
  }

  #negative(value: number): void {
    if (value >= -32) this.#byte(value & 0xff)
    else if (value >= -0x80) {
      this.#byte(0xd0)
      this.#byte(value & 0xff)
    } else if (value >= -0x8000) this.#uint16(0xd1, value & 0xffff)
    else this.#uint32(0xd2, value >>> 0)
  }

  #byte(byte: number): void {
    this.#reserve(1)
    this.#bytes[this.#end++] = byte
  }

  #uint16(head: number, value: number): void {
    this.#byte(head)
    this.#reserve(2)
    this.#end = this.#bytes.writeUInt16BE(value, this.#end)
  }

  #uint32(head: number, value: number): void {
    this.#byte(head)
    this.#reserve(4)
    this.#end = this.#bytes.writeUInt32BE(value, this.#end)
  }

  #reserve(more: number): void {
    const needed = this.#end + more
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#end)
    this.#bytes = larger
  }
}

const isArray = (value: object): value is readonly PackedValue[] => Array.isArray(value)

/** The bytes are not one value of JSON in MessagePack. */
export class PackError extends Error {}

/** The single value that the bytes consist of; throws `PackError`. `depthMax` bounds the nesting. */
export function unpack(bytes: Uint8Array, depthMax: number): PackedValue {
  const reader = new PackReader(bytes, depthMax)
  const value = reader.value(0)
  if (!reader.isAtEnd) throw new PackError('Bytes follow the value')
  return value
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

class PackReader {
  readonly #view: DataView
  #at = 0

  constructor(
    private readonly bytes: Uint8Array,
    private readonly depthMax: number,
  ) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get isAtEnd(): boolean {
    return this.#at === this.bytes.length
  }

  value(depth: number): PackedValue {
    const head = this.bytes[this.#take(1)] as number
    if (head < 0x80) return head
    if (head >= 0xe0) return head - 0x100
    if (head < 0x90) return this.#map(head & 0x0f, depth)
    if (head < 0xa0) return this.#array(head & 0x0f, depth)
    if (head < 0xc0) return this.#text(head & 0x1f)
    return this.#long(head, depth)
  }

  #long(head: number, depth: number): PackedValue {
    switch (head) {
      case 0xc0:
        return null
      case 0xc2:
      case 0xc3:
        return head === 0xc3
      case 0xd9:
        return this.#text(this.#view.getUint8(this.#take(1)))
      case 0xda:
        return this.#text(this.#view.getUint16(this.#take(2)))
      case 0xdb:
        return this.#text(this.#view.getUint32(this.#take(4)))
      case 0xdc:
        return this.#array(this.#view.getUint16(this.#take(2)), depth)
      case 0xdd:
        return this.#array(this.#view.getUint32(this.#take(4)), depth)
      case 0xde:
        return this.#map(this.#view.getUint16(this.#take(2)), depth)
      case 0xdf:
        return this.#map(this.#view.getUint32(this.#take(4)), depth)
      default:
        return this.#number(head)
    }
  }

  #number(head: number): number {
    switch (head) {
      case 0xca:
        return finite(this.#view.getFloat32(this.#take(4)))
      case 0xcb:
        return finite(this.#view.getFloat64(this.#take(8)))
      case 0xcc:
        return this.#view.getUint8(this.#take(1))
      case 0xcd:
        return this.#view.getUint16(this.#take(2))
      case 0xce:
        return this.#view.getUint32(this.#take(4))
      case 0xcf:
        return Number(this.#view.getBigUint64(this.#take(8)))
      case 0xd0:
        return this.#view.getInt8(this.#take(1))
      case 0xd1:
        return this.#view.getInt16(this.#take(2))
      case 0xd2:
        return this.#view.getInt32(this.#take(4))
      case 0xd3:
        return Number(this.#view.getBigInt64(this.#take(8)))
      default:
        throw new PackError('The value is not of JSON')
    }
  }

  #text(bytes: number): string {
    const start = this.#take(bytes)
    try {
      return decoder.decode(this.bytes.subarray(start, start + bytes))
    } catch {
      throw new PackError('A text is not valid UTF-8')
    }
  }

  #array(length: number, depth: number): PackedValue[] {
    this.#enter(length, depth)
    const values: PackedValue[] = []
    for (let at = 0; at < length; at++) values.push(this.value(depth + 1))
    return values
  }

  #map(length: number, depth: number): { readonly [key: string]: PackedValue } {
    this.#enter(length * 2, depth)
    const object: { [key: string]: PackedValue } = {}
    for (let at = 0; at < length; at++) {
      const key = this.value(depth + 1)
      if (typeof key !== 'string') throw new PackError('A key is not text')
      const value = this.value(depth + 1)
      if (key === '__proto__')
        // As `JSON.parse` does: a member of that name instead of another prototype.
        Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
      else object[key] = value
    }
    return object
  }

  /** Checks an array or map of so many values, each of which takes at least one byte. */
  #enter(values: number, depth: number): void {
    if (depth >= this.depthMax) throw new PackError('The value is nested too deeply')
    if (values > this.bytes.length - this.#at) throw new PackError('The bytes end early')
  }

  /** Advances over bytes; returns where they begin. */
  #take(count: number): number {
    const start = this.#at
    if (count > this.bytes.length - start) throw new PackError('The bytes end early')
    this.#at = start + count
    return start
  }
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new PackError('The value is not of JSON')
  return value
}
