/** The settings of the S3-compatible store: `S3_*` of the environment. Whether it is there is found out by using it. */
import type { StoreAddress } from '../../../engines/blobs/store-address.ts'

/** Reads one variable; undefined where it is absent, or wrong and said to be. */
type Read = (name: string, text: string | undefined, parse: (text: string) => string) => string | undefined

/** What most stores call themselves in signatures when they have no regions. */
const regionDefault = 'us-east-1'
const needed = ['S3_ENDPOINT', 'S3_BUCKET', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const

/** Null where nothing is set. All but the region go together: what is missing is a mistake. */
export function readS3Settings(
  environment: Readonly<Record<string, string | undefined>>,
  read: Read,
): StoreAddress | null {
  if (!needed.some((name) => environment[name])) return null
  for (const name of needed.filter((name) => !environment[name])) read(name, name, refuseMissing)
  const endpoint = read('S3_ENDPOINT', environment.S3_ENDPOINT, parseEndpoint)
  const bucket = read('S3_BUCKET', environment.S3_BUCKET, parseBucket)
  const region = read('S3_REGION', environment.S3_REGION || regionDefault, parseRegion)
  const accessKeyId = read('S3_ACCESS_KEY_ID', environment.S3_ACCESS_KEY_ID, parseKey)
  const secretAccessKey = read('S3_SECRET_ACCESS_KEY', environment.S3_SECRET_ACCESS_KEY, parseKey)
  const isComplete = endpoint && bucket && region && accessKeyId && secretAccessKey
  return isComplete ? { endpoint, bucket, region, accessKeyId, secretAccessKey } : null
}

function refuseMissing(): never {
  throw new RangeError(`is missing: ${needed.join(', ')} go together`)
}

/** Errors do not quote the text: it may contain a secret. */
function parseEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '' && url.hash === ''
  if (!isPlain) throw new RangeError('must be an address without the bucket, such as https://s3.example.com')
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

function parseBucket(text: string): string {
  if (!/^[A-Za-z\d][\w.-]{1,61}[A-Za-z\d]$/.test(text))
    throw new RangeError('must be the name of a bucket: 3 to 63 letters, digits, or any of . _ -')
  return text
}

function parseRegion(text: string): string {
  if (!/^[a-z\d-]{1,64}$/.test(text)) throw new RangeError('must be a region, such as eu-central-1')
  return text
}

function parseKey(text: string): string {
  if (!/^[\x21-\x7e]{1,256}$/.test(text)) throw new RangeError('must be printable ASCII without spaces')
  return text
}
