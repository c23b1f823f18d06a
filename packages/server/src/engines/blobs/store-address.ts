/** Where an S3-compatible store is: what the settings say of it, and its adapter is told. */

export interface StoreAddress {
  /** Such as `https://s3.eu-central-1.amazonaws.com`, without the bucket. */
  readonly endpoint: string
  readonly bucket: string
  /** Part of every signature; stores that have none take any. */
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}
