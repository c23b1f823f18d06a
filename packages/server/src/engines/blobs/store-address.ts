/** Address and credentials of an S3-compatible store, from the settings. */

export interface StoreAddress {
  /** Such as `https://s3.eu-central-1.amazonaws.com`, without the bucket. */
  readonly endpoint: string
  readonly bucket: string
  /** Part of every signature; stores without regions accept any. */
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}
