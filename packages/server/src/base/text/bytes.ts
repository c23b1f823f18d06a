/** Parses sizes such as `512kb`, `5MB` and `1.5gb`, in requests and in the configuration. */

const unitBytes: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3, tb: 1024 ** 4 }

const sizePattern = /^([0-9]{1,15}(?:\.[0-9]{1,3})?) ?(b|kb|mb|gb|tb)$/

/**
 * Bytes of a size such as `5mb`, in any case of letters; whole and at least one. Throws a RangeError whose message
 * completes a sentence about the value. Linear in the input.
 */
export function parseByteSize(text: string): number {
  const match = sizePattern.exec(text.toLowerCase())
  const bytes = Math.floor(Number(match?.[1]) * (unitBytes[match?.[2] ?? ''] ?? Number.NaN))
  if (!(bytes >= 1) || !Number.isSafeInteger(bytes))
    throw new RangeError('must be a size such as "512kb", "5mb" or "2gb"')
  return bytes
}
