/** `plinth users`: manages users by id or email, whether the server runs or not. */
import { notFound } from '../../errors.ts'
import type { ListedUser } from '../../features/users/accounts/admin-view.ts'
import type { UserPage } from '../../features/users/admin/admin.ts'
import type { UpdateInput } from '../../features/users/admin/input.ts'
import { type AdminClient, openAdminClient } from '../admin-client.ts'
import { type Call, type Command, UsageError } from '../command.ts'
import { readPassword } from '../prompt.ts'
import { configOptions } from '../serve.ts'

export const usersCommand: Command = {
  name: 'users',
  summary: 'List, create, change, disable, enable, delete or sign out users',
  operands: ['<action>', '[user]', '[role]'],
  options: {
    email: { value: '<address>', help: 'create, update: the email address' },
    password: { value: '<text>', help: 'create, update, password: the password' },
    role: { value: '<word>', help: 'create, update: the role (default user)' },
    name: { value: '<text>', help: 'create, update: the display name' },
    verified: { help: 'update: mark the address as verified' },
    unverified: { help: 'create, update: mark the address as unverified' },
    'last-owner': { help: 'delete, disable, set-dashboard-role: also the last owner of the dashboard' },
    ...configOptions,
  },
  details: `Actions; a user is named by id or email address:
  list              All users, newest first: id, email, role, time, disabled
  create            Create a user with --email; \`--role admin\` for an administrator
  update <user>     Change the given fields; a new address is treated as verified
  password <user>   Set a password, which ends all sessions
  disable <user>    End all sessions and refuse sign-in
  enable <user>     Allow a disabled user to sign in again
  delete <user>     Delete a user and their data
  revoke <user>     End all sessions
  set-dashboard-role <user> <role>
                    Let a user open the dashboard as owner, editor, support, viewer or a role
                    of the configuration; none removes the role

The last owner of the dashboard keeps access; --last-owner ends it, with the server stopped
or on PostgreSQL. No owner can then open the dashboard until you name another one here.

Works on the data folder of a stopped server, calls the running server (with its service
key) otherwise, and works on PostgreSQL (DATABASE_URL) in either case. Other processes
can see --password; without it, create and password prompt for it.`,
  run,
}

type Work = (client: AdminClient) => Promise<void>
/** Parses the operands and returns the work for a server. Throws `UsageError`. */
type Action = (call: Call) => Work | Promise<Work>

/** A user in one line. */
const lineOf = ({ id, email, role, createdAt, disabled }: ListedUser): string =>
  [id, email ?? '-', role, createdAt, ...(disabled ? ['disabled'] : [])].join('  ')

const list: Action =
  ({ terminal }) =>
  async (client) => {
    let cursor: string | null = '0'
    while (cursor !== null) {
      const page: UserPage = await client.list(cursor)
      for (const user of page.users) terminal.out(lineOf(user))
      ;({ cursor } = page)
    }
  }

/** The request body for the given options. */
function fieldsOf({ options: { email, password, role, name, verified, unverified } }: Call): UpdateInput {
  if (verified !== undefined && unverified !== undefined)
    throw new UsageError('--verified and --unverified contradict each other.')
  return {
    ...(email === undefined ? {} : { email }),
    ...(password === undefined ? {} : { password }),
    ...(role === undefined ? {} : { role }),
    ...(name === undefined ? {} : { displayName: name }),
    ...(verified === undefined ? {} : { emailVerified: true }),
    ...(unverified === undefined ? {} : { emailVerified: false }),
  }
}

const create: Action = async (call) => {
  const { email, password: given, ...fields } = fieldsOf(call)
  if (email === undefined) throw new UsageError('`plinth users create` needs --email <address>.')
  const password = given ?? (await readPassword())
  return async (client) => call.terminal.out(lineOf(await client.create({ email, password, ...fields })))
}

const update: Action = (call) => {
  const fields = fieldsOf(call)
  if (Object.keys(fields).length === 0)
    throw new UsageError('`plinth users update` needs something to change, such as --email <address>.')
  return async (client) => {
    const id = await getId(client, call.operands[1] ?? '')
    call.terminal.out(lineOf(await client.update(id, fields)))
  }
}

const setPassword: Action = async ({ options: { password: given }, operands: [, named = ''], terminal }) => {
  const password = given ?? (await readPassword())
  return async (client) => {
    await client.update(await getId(client, named), { password })
    terminal.out(`${named} has a new password and is signed out everywhere.`)
  }
}

/** An action on one user, and the message afterwards. */
const toOne =
  (done: string, act: (client: AdminClient, id: string) => Promise<unknown>): Action =>
  ({ operands: [, named = ''], terminal }) =>
  async (client) => {
    await act(client, await getId(client, named))
    terminal.out(`${named} ${done}.`)
  }

const setDashboardRole: Action = ({ operands: [, named = '', role], terminal }) => {
  if (role === undefined) throw new UsageError('`plinth users set-dashboard-role` needs a role, or none.')
  return async (client) => {
    await client.setDashboardRole(await getId(client, named), role === noRole ? null : role)
    terminal.out(
      role === noRole ? `${named} can no longer open the dashboard.` : `${named} is ${role} in the dashboard.`,
    )
  }
}

/** In place of a role: removes the role of a user. */
const noRole = 'none'

/** Ids contain no @. */
async function getId(client: AdminClient, named: string): Promise<string> {
  if (!named.includes('@')) return named
  const user = await client.findByEmail(named)
  if (!user) throw notFound('User')
  return user.id
}

/** Actions without a user operand. */
const general: ReadonlyMap<string, Action> = new Map([
  ['list', list],
  ['create', create],
])
/** Actions on one user. */
const single: ReadonlyMap<string, Action> = new Map([
  ['update', update],
  ['password', setPassword],
  ['disable', toOne('is disabled and signed out everywhere', (client, id) => client.update(id, { disabled: true }))],
  ['enable', toOne('is enabled', (client, id) => client.update(id, { disabled: false }))],
  ['delete', toOne('is deleted', (client, id) => client.remove(id))],
  ['set-dashboard-role', setDashboardRole],
  ['revoke', toOne('is signed out everywhere', (client, id) => client.revoke(id))],
])

/** The flag to end the access of the last owner, which HTTP never does. */
const lastOwner = 'last-owner'

/** The options of each action besides the common ones. */
const actionOptions: ReadonlyMap<string, readonly string[]> = new Map([
  ['create', ['email', 'password', 'role', 'name', 'unverified']],
  ['update', ['email', 'password', 'role', 'name', 'verified', 'unverified']],
  ['password', ['password']],
  ['disable', [lastOwner]],
  ['delete', [lastOwner]],
  ['set-dashboard-role', [lastOwner]],
])

function getAction({ operands: [name = '', user, role], options }: Call): Action {
  const action = general.get(name) ?? single.get(name)
  if (!action) {
    const names = [...general.keys(), ...single.keys()].join(', ')
    throw new UsageError(`"${name}" is not an action of \`plinth users\`. Available: ${names}.`)
  }
  if (single.has(name) && user === undefined)
    throw new UsageError(`\`plinth users ${name}\` needs a user: an id or an email.`)
  if (general.has(name) && user !== undefined) throw new UsageError(`\`plinth users ${name}\` does not take "${user}".`)
  if (role !== undefined && name !== 'set-dashboard-role')
    throw new UsageError(`\`plinth users ${name}\` does not take "${role}".`)
  const given = ['email', 'password', 'role', 'name', 'verified', 'unverified', lastOwner].filter(
    (option) => options[option] !== undefined,
  )
  const foreign = given.find((option) => !actionOptions.get(name)?.includes(option))
  if (foreign !== undefined) throw new UsageError(`\`plinth users ${name}\` does not take --${foreign}.`)
  return action
}

async function run(call: Call): Promise<number> {
  const work = await getAction(call)(call)
  const mayEndLastOwner = call.options[lastOwner] !== undefined
  const client = await openAdminClient({ ...call.options, mayEndLastOwner }, call.terminal)
  try {
    await work(client)
    return 0
  } finally {
    await client.close()
  }
}
