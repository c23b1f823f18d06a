/**
 * PostgreSQL connection URLs: `postgres://user:password@host:port,host:port/database?…`, as libpq parses them. Several
 * hosts are a primary and its standbys; the primary is found when connecting.
 */

export interface DatabaseHost {
  /** `host:port` without credentials, for logs and messages. */
  readonly name: string
  /** The URL of this host. */
  readonly url: string
}

export interface DatabaseAddress {
  readonly hosts: readonly DatabaseHost[]
  readonly database: string
  /** `PostgreSQL at host:port, database "name"`, without credentials. */
  readonly description: string
}

const form = 'postgres://user:password@host:5432/database'
const urlPattern = /^(postgres(?:ql)?):\/\/([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/
const sessionAttributes: readonly string[] = ['any', 'read-write', 'primary']
const portDefault = '5432'

/** Throws `RangeError`; the message never contains the URL, because of its password. */
export function parseDatabaseUrl(text: string): DatabaseAddress {
  const [, protocol = '', authority = '', path = '', search = ''] = urlPattern.exec(text) ?? []
  const at = authority.lastIndexOf('@')
  const credentials = authority.slice(0, at + 1)
  const names = authority.slice(at + 1).split(',')
  const query = new URLSearchParams(search)
  const wanted = query.get('target_session_attrs')
  if (wanted !== null && !sessionAttributes.includes(wanted))
    throw new RangeError(`target_session_attrs must be one of ${sessionAttributes.join(', ')}`)
  // Only primaries are used, whatever the parameter requests; the library would pass it on to the server.
  query.delete('target_session_attrs')
  const rest = query.size > 0 ? `?${query}` : ''
  const hosts = names.map((name) => hostOf(name, `${protocol}://${credentials}${name}${path}${rest}`))
  const database = decode(path.slice(1))
  if (database === '') throw new RangeError(`must name a database, as in ${form}`)
  const addresses = hosts.map(({ name }) => name).join(', ')
  return { hosts, database, description: `PostgreSQL at ${addresses}, database "${database}"` }
}

function hostOf(name: string, url: string): DatabaseHost {
  const parsed = name !== '' && URL.canParse(url) ? new URL(url) : null
  if (parsed === null || parsed.hostname === '')
    throw new RangeError(`must be an address such as ${form}, with commas between several hosts`)
  return { name: `${parsed.hostname}:${parsed.port || portDefault}`, url }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new RangeError(`must name a database, as in ${form}`)
  }
}

/** The same addresses with another user. */
export function withUser(address: DatabaseAddress, username: string, password: string): DatabaseAddress {
  const hosts = address.hosts.map(({ name, url }) => {
    const own = new URL(url)
    own.username = username
    own.password = password
    return { name, url: own.href }
  })
  return { ...address, hosts }
}
