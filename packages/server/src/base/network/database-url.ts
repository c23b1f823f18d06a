/**
 * Addresses of a PostgreSQL: `postgres://user:password@host:port,host:port/database?…`, as libpq reads them. Several
 * hosts are one database with its standbys; connecting finds out which of them takes writes.
 */

export interface DatabaseHost {
  /** `host:port`, without a password: fit for logs and messages. */
  readonly name: string
  /** The URL of this host alone. */
  readonly url: string
}

export interface DatabaseAddress {
  readonly hosts: readonly DatabaseHost[]
  readonly database: string
  /** `PostgreSQL at host:port, database "name"`: never with a password. */
  readonly description: string
}

const form = 'postgres://user:password@host:5432/database'
const urlPattern = /^(postgres(?:ql)?):\/\/([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/
const sessionAttributes: readonly string[] = ['any', 'read-write', 'primary']
const portDefault = '5432'

/** Throws `RangeError` with what is wrong; the message never holds the URL, which has a password in it. */
export function parseDatabaseUrl(text: string): DatabaseAddress {
  const [, protocol = '', authority = '', path = '', search = ''] = urlPattern.exec(text) ?? []
  const at = authority.lastIndexOf('@')
  const credentials = authority.slice(0, at + 1)
  const names = authority.slice(at + 1).split(',')
  const query = new URLSearchParams(search)
  const wanted = query.get('target_session_attrs')
  if (wanted !== null && !sessionAttributes.includes(wanted))
    throw new RangeError(`target_session_attrs must be one of ${sessionAttributes.join(', ')}`)
  // Every server that is used takes writes, whatever is asked for; the library would pass the parameter on.
  query.delete('target_session_attrs')
  const rest = query.size > 0 ? `?${query}` : ''
  const hosts = names.map((name) => hostOf(name, `${protocol}://${credentials}${name}${path}${rest}`))
  const database = decode(path.slice(1))
  if (database === '') throw new RangeError(`must name a database, as in ${form}`)
  const places = hosts.map(({ name }) => name).join(', ')
  return { hosts, database, description: `PostgreSQL at ${places}, database "${database}"` }
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

/** The address with another user: each host keeps its parameters. */
export function withUser(address: DatabaseAddress, username: string, password: string): DatabaseAddress {
  const hosts = address.hosts.map(({ name, url }) => {
    const own = new URL(url)
    own.username = username
    own.password = password
    return { name, url: own.href }
  })
  return { ...address, hosts }
}
