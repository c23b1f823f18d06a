import { expect, test } from 'bun:test'
import { parseDatabaseUrl, withUser } from './database-url.ts'

test('one host, with the default port named', () => {
  const address = parseDatabaseUrl('postgres://ada:p%40ss@db.example/plinth?sslmode=require')
  expect(address).toEqual({
    hosts: [{ name: 'db.example:5432', url: 'postgres://ada:p%40ss@db.example/plinth?sslmode=require' }],
    database: 'plinth',
    description: 'PostgreSQL at db.example:5432, database "plinth"',
  })
})

test('several hosts share credentials, database and parameters', () => {
  const { hosts, description } = parseDatabaseUrl(
    'postgresql://ada:secret@a,b:5433,[::1]:5434/plinth?target_session_attrs=read-write&sslmode=require',
  )
  expect(hosts).toEqual([
    { name: 'a:5432', url: 'postgresql://ada:secret@a/plinth?sslmode=require' },
    { name: 'b:5433', url: 'postgresql://ada:secret@b:5433/plinth?sslmode=require' },
    { name: '[::1]:5434', url: 'postgresql://ada:secret@[::1]:5434/plinth?sslmode=require' },
  ])
  expect(description).toBe('PostgreSQL at a:5432, b:5433, [::1]:5434, database "plinth"')
  expect(description).not.toContain('secret')
})

test('replaces the user on every host', () => {
  const { hosts } = withUser(parseDatabaseUrl('postgres://ada:secret@a,b:5433/plinth'), 'role', 'p@ss')
  expect(hosts.map(({ url }) => url)).toEqual([
    'postgres://role:p%40ss@a/plinth',
    'postgres://role:p%40ss@b:5433/plinth',
  ])
})

test.each([
  ['postgres://ada:hunter2@db.example', 'must name a database'],
  ['postgres://ada:hunter2@a,b/', 'must name a database'],
  ['postgres://ada:hunter2@db.example/%zz', 'must name a database'],
  ['postgres:///plinth?password=hunter2', 'must be an address'],
  ['postgres://ada:hunter2@a,,b/plinth', 'must be an address'],
  ['postgres://ada:hunter2@a:5432x/plinth', 'must be an address'],
  ['mysql://ada:hunter2@a/plinth', 'must be an address'],
  ['ada:hunter2@db.example/plinth', 'must be an address'],
  ['postgres://ada:hunter2@a/plinth?target_session_attrs=standby', 'target_session_attrs must be one of'],
])('%s is refused, without its password', (url, message) => {
  expect(() => parseDatabaseUrl(url)).toThrow(message)
  try {
    parseDatabaseUrl(url)
  } catch (error) {
    expect(String(error)).not.toContain('hunter2')
  }
})
