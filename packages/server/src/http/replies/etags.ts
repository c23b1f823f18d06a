/** Entity tags in conditions (RFC 9110 §13.1): lists of tags or `*`. A malformed list matches nothing. */

const tag = '(?:W\\/)?"[\\x21\\x23-\\x7e\\x80-\\uffff]*"'
const tagPattern = new RegExp(tag, 'g')
// Empty members of a list are allowed.
const listPattern = new RegExp(`^[ \\t,]*${tag}(?:[ \\t]*,[ \\t,]*${tag})*[ \\t,]*$`)

const tagsIn = (list: string): readonly string[] => (listPattern.test(list) ? (list.match(tagPattern) ?? []) : [])

const withoutWeak = (etag: string): string => (etag.startsWith('W/') ? etag.slice(2) : etag)

/** Whether `If-None-Match` names the entity tag: weak comparison. */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true
  const wanted = withoutWeak(etag)
  return tagsIn(ifNoneMatch).some((one) => withoutWeak(one) === wanted)
}

/** The tag of one version of a record, as one caller sees it: equal tags mean equal bodies, the number orders them. */
export const versionTag = (version: number, fingerprint: string): string => `"${version}-${fingerprint}"`

/**
 * Whether `If-Match` names the version: by a tag of `versionTag` whatever its body was, or by the bare number, with or
 * without quotes. Strong comparison.
 */
export function matchesVersion(ifMatch: string, version: number): boolean {
  if (ifMatch.trim() === '*' || ifMatch.trim() === String(version)) return true
  return tagsIn(ifMatch).some((one) => one === `"${version}"` || one.startsWith(`"${version}-`))
}

/** Whether `If-Match` names the entity tag: strong comparison, so that a weak one never matches. */
export function matchesStrongly(ifMatch: string, etag: string): boolean {
  if (etag.startsWith('W/')) return ifMatch.trim() === '*'
  return ifMatch === etag || ifMatch.trim() === '*' || tagsIn(ifMatch).includes(etag)
}
