import { expect, test } from 'bun:test'
import { dashboardRolesMax } from '../../../limits/dashboard.ts'
import type { Mode } from '../../config.ts'
import { findMistakes, parseConfig } from '../../validate.ts'

const parse = (written: object, mode: Mode = 'release') => parseConfig(written, { mode, rootKey: '' }).config.dashboard

test('by default there are the built-in roles, and a second factor is required in release mode', () => {
  expect([...(parse({})?.roles.keys() ?? [])]).toEqual(['owner', 'editor', 'support', 'viewer'])
  expect(parse({})?.requiresMfa).toBe(true)
  expect(parse({}, 'development')?.requiresMfa).toBe(false)
  expect(parse({ dashboard: { requireMfa: true } }, 'development')?.requiresMfa).toBe(true)
  expect(parse({ dashboard: { requireMfa: false } })?.requiresMfa).toBe(false)
})

test('roles of the configuration are added, and false switches the dashboard off', () => {
  const scopes = ['db:table:posts:*', 'dashboard:audit:*:read']
  expect(parse({ dashboard: { roles: { moderator: scopes } } })?.roles.get('moderator')).toEqual({
    scopes,
    isReadOnly: false,
  })
  expect(parse({ dashboard: false })).toBeNull()
})

test('mistakes are named', () => {
  const mistakes = (dashboard: unknown): readonly string[] => findMistakes({ dashboard }, '')
  expect(mistakes(true)).toEqual(['dashboard: must be false, or { roles, requireMfa }'])
  expect(mistakes({ roles: { owner: ['*'] } })).toEqual([
    'dashboard.roles.owner: is a built-in role; choose another name',
  ])
  expect(mistakes({ roles: { Admin: ['*'] } })).toEqual([
    'dashboard.roles.Admin: must be a lowercase letter, then lowercase letters, digits and "-", at most 32',
  ])
  expect(mistakes({ roles: { reader: [] } })).toEqual(['dashboard.roles.reader: must not be empty'])
  expect(mistakes({ roles: { reader: ['posts:read'] } })[0]).toContain('"posts:read" is not a valid scope')
  expect(mistakes({ requireMFA: true })).toEqual([
    'dashboard.requireMFA: is not known here. Did you mean "requireMfa"?',
  ])
  const many = Object.fromEntries(Array.from({ length: dashboardRolesMax + 1 }, (_, at) => [`r${at}`, ['*']]))
  expect(mistakes({ roles: many })).toEqual([`dashboard.roles: must have at most ${dashboardRolesMax} roles`])
})

test('no service key has the name of an administrator', () => {
  const key = { name: 'admin:1', key: 'a'.repeat(16), scopes: ['*'] }
  expect(findMistakes({ serviceKeys: [key] }, '')).toEqual([
    'serviceKeys[0].name: must not start with "admin:", which marks administrators',
  ])
})
