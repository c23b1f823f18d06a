/** Every path on which an account is created or an anonymous one is upgraded, for the tests of what applies to all. */
import { createClient } from '../client.ts'
import type { TestServer } from '../server.ts'
import { auth, bearer, newEmail, password, unlimitedRates } from './accounts.ts'
import { mailAuth } from './mail-config.ts'
import { type Mailbox, openMailbox } from './mailbox.ts'
import { appUrl, openBrowser, publicUrl, scriptedProvider, scriptedReturn, signInBy } from './oauth.ts'
import { openScriptedIssuer, type ScriptedIssuer } from './scripted-issuer.ts'

/** How a sign-up ended, whatever the form of its response. */
export interface Outcome {
  readonly isDone: boolean
  /** Null where the response has none. */
  readonly status: number | null
  readonly slug: string | null
  readonly message: string | null
  /** Null where the path does not sign in. */
  readonly accessToken: string | null
}

export interface Attempt {
  /** Of the account, if it gets one. */
  readonly email: string | null
  /** Of the account that is upgraded. */
  readonly id: string | null
  /** May be called again after it has failed. */
  run(): Promise<Outcome>
}

export interface SignUpPath {
  readonly provider: string | null
  /** Whether the path signs in. */
  readonly signsIn: boolean
  /** Whether the answer names the reason of a refusal by its slug. */
  readonly hasSlug: boolean
  prepare(server: TestServer): Promise<Attempt>
}

type Reply = { readonly status: number; readonly body: Record<string, string> }

const outcomeOf = ({ status, body }: Reply): Outcome => ({
  isDone: status < 300,
  status,
  slug: body.slug ?? null,
  message: body.message ?? null,
  accessToken: body.accessToken ?? null,
})

const outcomeOfFragment = (fragment: Readonly<Record<string, string>>): Outcome => ({
  isDone: fragment.error === undefined,
  status: null,
  slug: fragment.error ?? null,
  message: fragment.message ?? null,
  accessToken: fragment.accessToken ?? null,
})

async function anonymousUser(server: TestServer) {
  const { body } = await server.anonymous.post(`${auth}/signin/anonymous`, {})
  return { id: body.user.id as string, headers: bearer(body.accessToken) }
}

const ownPaths: Readonly<Record<string, SignUpPath>> = {
  password: {
    provider: 'password',
    signsIn: true,
    hasSlug: true,
    async prepare(server) {
      const email = newEmail()
      const run = async () => outcomeOf(await server.anonymous.post(`${auth}/signup`, { email, password }))
      return { email, id: null, run }
    },
  },
  'password, of an anonymous user': {
    provider: 'password',
    signsIn: true,
    hasSlug: true,
    async prepare(server) {
      const email = newEmail()
      const { id, headers } = await anonymousUser(server)
      const run = async () => outcomeOf(await server.anonymous.post(`${auth}/signup`, { email, password }, headers))
      return { email, id, run }
    },
  },
  anonymous: {
    provider: 'anonymous',
    signsIn: true,
    hasSlug: true,
    prepare: async (server) => ({
      email: null,
      id: null,
      run: async () => outcomeOf(await server.anonymous.post(`${auth}/signin/anonymous`, {})),
    }),
  },
}

const mailPaths = (mailbox: Mailbox): Readonly<Record<string, SignUpPath>> => ({
  link: {
    provider: 'email',
    signsIn: true,
    hasSlug: true,
    async prepare(server) {
      const email = newEmail()
      await server.anonymous.post(`${auth}/signin/magic-link`, { email })
      const token = await mailbox.nextToken(email)
      const run = async () => outcomeOf(await server.anonymous.post(`${auth}/verify-magic-link`, { token }))
      return { email, id: null, run }
    },
  },
  code: {
    provider: 'email',
    signsIn: true,
    hasSlug: true,
    async prepare(server) {
      const email = newEmail()
      await server.anonymous.post(`${auth}/signin/email-otp`, { email })
      const code = await mailbox.nextCode(email)
      const run = async () => outcomeOf(await server.anonymous.post(`${auth}/verify-email-otp`, { email, code }))
      return { email, id: null, run }
    },
  },
  'address of an anonymous user': {
    provider: 'email',
    signsIn: false,
    hasSlug: true,
    async prepare(server) {
      const newAddress = newEmail()
      const { id, headers } = await anonymousUser(server)
      await server.anonymous.post(`${auth}/change-email`, { newEmail: newAddress }, headers)
      const token = await mailbox.nextToken(newAddress)
      const run = async () => outcomeOf(await server.anonymous.post(`${auth}/verify-email-change`, { token }, headers))
      return { email: newAddress, id, run }
    },
  },
})

let subjects = 0
const claimsOf = (email: string) => ({ sub: `subject-${++subjects}`, email, email_verified: true, name: 'Cleo' })

const providerPaths = (issuer: ScriptedIssuer): Readonly<Record<string, SignUpPath>> => ({
  provider: {
    provider: 'club',
    signsIn: true,
    hasSlug: true,
    async prepare(server) {
      const email = newEmail()
      const claims = claimsOf(email)
      return {
        email,
        id: null,
        run: async () => outcomeOfFragment(await signInBy(server, 'club', issuer, { claims })),
      }
    },
  },
  'provider, of an anonymous user': {
    provider: 'club',
    signsIn: false,
    hasSlug: true,
    async prepare(server) {
      const email = newEmail()
      const { id, headers } = await anonymousUser(server)
      const client = createClient(() => server.url, headers)
      const { body } = await client.post(`${auth}/oauth/club/link`, { redirectUrl: appUrl })
      const browser = openBrowser(server)
      const providerUrl = (await browser.visit(body.url)).location ?? ''
      const back = scriptedReturn(issuer, providerUrl, { claims: claimsOf(email) })
      const { linkTicket } = await browser.openCallback(back)
      return { email, id, run: async () => outcomeOf(await client.post(`${auth}/identities`, { linkTicket })) }
    },
  },
})

const operatorPaths: Readonly<Record<string, SignUpPath>> = {
  'administrator creates': {
    provider: null,
    signsIn: false,
    hasSlug: true,
    async prepare({ service }) {
      const email = newEmail()
      return {
        email,
        id: null,
        run: async () => outcomeOf(await service.post(`${auth}/admin/users`, { email, password })),
      }
    },
  },
  'administrator gives an anonymous user an address': {
    provider: null,
    signsIn: false,
    hasSlug: true,
    async prepare(server) {
      const email = newEmail()
      const { id } = await anonymousUser(server)
      return {
        email,
        id,
        run: async () => outcomeOf(await server.service.patch(`${auth}/admin/users/${id}`, { email })),
      }
    },
  },
  import: {
    provider: null,
    signsIn: false,
    hasSlug: false,
    async prepare({ service }) {
      const email = newEmail()
      return {
        email,
        id: null,
        async run() {
          const { body } = await service.post(`${auth}/admin/users/import`, { users: [{ email, password }] })
          const [{ status, message = null }] = body.results
          return { isDone: status === 'created', status: null, slug: null, message, accessToken: null }
        },
      }
    },
  },
  'set-up': {
    provider: null,
    signsIn: true,
    hasSlug: true,
    async prepare(server) {
      const email = newEmail()
      const token = await server.issueSetupToken()
      return {
        email,
        id: null,
        run: async () => outcomeOf(await server.anonymous.post(`${auth}/setup`, { token, email, password })),
      }
    },
  },
}

/** The account of a sign-up that has succeeded, as service keys see it. */
export async function accountOf({ service }: TestServer, { id, email }: Attempt, { accessToken }: Outcome) {
  const subject = () => JSON.parse(Buffer.from(accessToken?.split('.')[1] ?? '', 'base64url').toString()).sub
  const byEmail = async () => (await service.get(`${auth}/admin/users?email=${email}`)).body.users[0].id
  const found = id ?? (email === null ? subject() : await byEmail())
  return (await service.get(`${auth}/admin/users/${found}`)).body
}

/** Must be closed. `config` is what a server needs for the paths. */
export async function openSignUpPaths() {
  const mailbox = await openMailbox()
  const issuer = await openScriptedIssuer()
  const config = {
    auth: {
      ...mailAuth(mailbox),
      redirectUrls: ['https://app.example.org'],
      providers: { club: scriptedProvider(issuer) },
    },
    rateLimits: unlimitedRates,
  }

  return {
    paths: { ...ownPaths, ...mailPaths(mailbox), ...providerPaths(issuer), ...operatorPaths } as Readonly<
      Record<string, SignUpPath>
    >,
    config,
    settings: { publicUrl },
    mailbox,
    issuer,
    async close() {
      issuer.close()
      await mailbox.close()
    },
  }
}
