/** The area "Rules" in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../scripts/build/dashboard.ts'
import { exists, field, or } from '../../../server/src/access/filter.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { adminUsers, unlimitedRates } from '../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

type Auth = { id: string; custom: Record<string, unknown> } | null

const text = { type: 'string' } as const
const payload = '<img src=x onerror="alert(1)">'

const config = {
  rateLimits: unlimitedRates,
  dashboard: { roles: { explainer: ['dashboard:rules:*:explain', 'schema:endpoint:*:read'] } },
  databases: {
    shared: {
      tables: {
        notes: {
          schema: { title: text, authorId: text, published: { type: 'boolean' }, secret: text },
          hidden: ['secret'],
          access: {
            read: (auth: Auth) => (auth ? or({ authorId: auth.id }, { published: true }) : { published: true }),
            insert: (auth: Auth) => auth && { authorId: auth.id },
            update: (auth: Auth) => auth && { authorId: auth.id, published: false },
            delete: (auth: Auth) => auth && { authorId: auth.id },
          },
        },
        board: { schema: { title: text }, access: { read: true, update: true } },
        members: { schema: { teamId: text, userId: text }, access: {} },
        plans: {
          schema: { title: text, teamId: text },
          access: { read: (auth: Auth) => auth && exists('members', { userId: auth.id, teamId: field('teamId') }) },
        },
        vault: {
          schema: { title: text, secret: text },
          hidden: ['secret'],
          access: { read: (auth: Auth) => auth && { secret: String(auth.custom.word) }, update: true },
        },
      },
    },
    tenants: {
      instance: true,
      access: (auth: Auth, id: string) => auth?.custom.org === id,
      tables: { docs: { schema: { title: text }, access: { read: (auth: Auth) => auth !== null } } },
    },
  },
} as const

describeInBrowser('Rules in the dashboard', 'rules in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  let mariesId = ''
  const base = '/api/db/shared/tables'

  beforeAll(async () => {
    await buildDashboard()
    server = await startServer({ config })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
    const marie = { email: 'marie@example.com', password: 'a password of a user', displayName: 'Marie Curie' }
    const created = await server.service.post(adminUsers, marie)
    expect(created.status).toBe(201)
    mariesId = created.body.user.id
    const notes = [
      { id: 'draft', title: 'Radium', authorId: 'marie', published: false },
      { id: 'public', title: 'Polonium', authorId: 'marie', published: true },
      { id: 'bare', title: 'No author' },
      { id: 'hers', authorId: mariesId, published: false },
      { id: 'markup', title: payload, authorId: payload, published: false },
    ]
    expect((await server.service.post(`${base}/notes/batch`, { inserts: notes })).status).toBe(200)
    await server.service.post(`${base}/members`, { teamId: 'red', userId: 'ada' })
    await server.service.post(`${base}/plans`, { id: 'plan', title: 'Plan', teamId: 'red' })
    await server.service.post(`${base}/vault`, { id: 'gold', title: 'Gold', secret: 'sesame' })
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  const claims = (id: string, custom: object = {}): string => `claims:${JSON.stringify({ id, custom })}`
  const pathOf = (question: Record<string, string>): string =>
    `/rules?${new URLSearchParams({ namespace: 'shared', table: 'notes', operation: 'get', as: 'anonymous', ...question })}`

  /** What the page shows for a question: the verdict, its texts, and the result of each clause by path. */
  async function answerTo(question: Record<string, string>, from: SignedIn = sheet) {
    await from.open(pathOf(question), 'Rules')
    const verdict = from.page.locator('.rules-verdict')
    await verdict.waitFor()
    const clauses = await from.page.locator('[data-path]').evaluateAll((nodes) =>
      nodes.map((node) => [
        node.getAttribute('data-path') ?? '',
        [...(node.querySelector(':scope > .rules-clause')?.querySelectorAll('.rules-result, .rules-value') ?? [])]
          .map((part) =>
            [...part.childNodes]
              .map((one) => one.textContent?.trim())
              .join(' ')
              .trim(),
          )
          .join(' · '),
      ]),
    )
    const title = await verdict.getByRole('heading').textContent()
    return { title, text: await verdict.textContent(), clauses: Object.fromEntries(clauses) as Record<string, string> }
  }

  test('ten questions have the answers of the API, with the clauses that lead to them', async () => {
    // 1: a draft is no record to others
    const omars = await answerTo({ id: 'draft', as: claims('omar') })
    expect(omars).toMatchObject({
      title: 'Denied 404',
      clauses: {
        read: 'false',
        'read.or[0]': 'false · authorId "marie"',
        'read.or[1]': 'false · published false',
      },
    })
    expect(omars.text).toContain('A user with these claims may not get shared.notes draft.')
    // 2: its author reads it
    expect(await answerTo({ id: 'draft', as: claims('marie') })).toMatchObject({
      title: 'Allowed 200',
      clauses: { read: 'true', 'read.or[0]': 'true · authorId "marie"', 'read.or[1]': 'false · published false' },
    })
    // 3: anonymous callers read what is published
    expect(await answerTo({ id: 'public' })).toMatchObject({
      title: 'Allowed 200',
      clauses: { read: 'true · published true' },
    })
    // 4: an empty field is neither true nor false, and denies
    expect(await answerTo({ id: 'bare' })).toMatchObject({
      title: 'Denied 404',
      clauses: { read: 'empty · published empty' },
    })
    // 5: no create without credentials
    const create = await answerTo({ operation: 'create', row: '{"title":"x"}' })
    expect(create).toMatchObject({ title: 'Denied 401', clauses: { insert: 'false' } })
    // 6: nor for another user
    expect(await answerTo({ operation: 'create', row: '{"authorId":"marie"}', as: claims('omar') })).toMatchObject({
      title: 'Denied 403',
      clauses: { insert: 'false · authorId "marie"' },
    })
    // 7: an update may not give a record away
    expect(
      await answerTo({ operation: 'update', id: 'draft', row: '{"authorId":"omar"}', as: claims('marie') }),
    ).toMatchObject({
      title: 'Denied 403',
      clauses: {
        'update.before': 'true',
        'update.after': 'false',
        'update.after.and[0]': 'false · authorId "omar"',
        'update.after.and[1]': 'true · published false',
      },
    })
    // 8: membership in another table, of a stored record
    expect(await answerTo({ table: 'plans', id: 'plan', as: claims('ada') })).toMatchObject({
      title: 'Allowed 200',
      clauses: { read: 'true · teamId "red"' },
    })
    await sheet.page.getByText('An index of').waitFor()
    // 9: a user as stored, and a list that leaves a record out
    expect(await answerTo({ id: 'hers', as: `user:${mariesId}` })).toMatchObject({ title: 'Allowed 200' })
    const list = await answerTo({ operation: 'list', id: 'draft', as: `user:${mariesId}` })
    expect(list).toMatchObject({ title: 'Allowed 200', clauses: { read: 'false' } })
    expect(list.text).toContain('without this record')
    // 10: another tenant is denied before any rule of the table
    const tenant = await answerTo({
      namespace: 'tenants',
      table: 'docs',
      instance: 'acme',
      operation: 'list',
      as: claims('ada', { org: 'other' }),
    })
    expect(tenant).toMatchObject({ title: 'Denied 403', clauses: { instance: 'false' } })
    // A filter is a list of conditions, as the API takes it.
    const filter = JSON.stringify([['title', '==', 'Radium']])
    expect(await answerTo({ operation: 'list', id: 'public', filter, sort: 'createdAt:desc' })).toMatchObject({
      title: 'Allowed 200',
      clauses: { read: 'true · published true', filter: 'false · title "Polonium"' },
    })
    // Without a record nothing is decided.
    expect(await answerTo({ operation: 'list' })).toMatchObject({ title: 'Allowed 200', clauses: { read: 'open' } })
    expectNoFaults(sheet)
  })

  test('a question of the form is explained, is in the URL, and leads to a command', async () => {
    const { page } = sheet
    await sheet.open('/rules', 'Rules')
    await takeScreenshots(sheet, 'rules-empty')
    expect(await page.getByRole('button', { name: 'Explain' }).isDisabled()).toBe(true)
    await page.getByRole('radio', { name: 'User', exact: true }).check({ force: true })
    await page.getByRole('searchbox').fill('marie')
    await page.getByRole('button', { name: /Marie Curie/ }).click()
    await page.getByRole('combobox', { name: 'Table' }).click()
    await page.getByRole('option', { name: 'shared.notes' }).click()
    await page.getByRole('radio', { name: 'delete' }).check({ force: true })
    await page.getByLabel('Record id').fill('draft')
    await page.getByLabel('Record id').press('Enter')
    await page.getByRole('heading', { name: 'Denied 404' }).waitFor()
    expect(new URL(page.url()).searchParams.get('as')).toBe(`user:${mariesId}`)
    await page.getByText(`npx plinth rules explain shared notes delete --id=draft --as=user:${mariesId}`).waitFor()

    await page.getByRole('radio', { name: 'Claims' }).check({ force: true })
    await page.getByLabel('Properties of the caller').fill('{"id": "marie"')
    expect(await page.getByRole('button', { name: 'Explain' }).isDisabled()).toBe(true)
    await page.getByLabel('Properties of the caller').fill('{"id": "marie"}')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByRole('heading', { name: 'Allowed 200' }).waitFor()
    await page.getByText('SQL and its plan').click()
    await page.getByText('Plan', { exact: true }).waitFor()
    await takeScreenshots(sheet, 'rules', { fullPage: true })
    expect(await findBarriers(sheet)).toEqual([])
    await page.goBack()
    await page.getByRole('heading', { name: 'Denied 404' }).waitFor()
    expect(await page.getByRole('radio', { name: 'User', exact: true }).isChecked()).toBe(true)

    await answerTo({ id: 'draft', as: claims('omar') })
    await takeScreenshots(sheet, 'rules-denied', { fullPage: true })
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  test('the matrix shows conditions, and a cell leads to the question about it', async () => {
    const { page } = sheet
    await sheet.open('/rules/matrix', 'Rules')
    const cell = (name: string) => page.getByRole('button', { name, exact: true })
    await cell('shared.notes create as anonymous: never').waitFor()
    await cell('shared.notes delete as owner: always').waitFor()
    await cell('shared.vault update as anonymous: never').waitFor()
    await cell('shared.board update as anonymous: always, open to everyone').waitFor()
    await cell('shared.board read as anonymous: always').waitFor()
    await takeScreenshots(sheet, 'rules-matrix')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('searchbox').fill('notes')
    await cell('shared.vault update as anonymous: never').waitFor({ state: 'detached' })
    await cell('shared.notes read as anonymous: depends').focus()
    await page.locator('.tooltip').getByText('published == true').waitFor()
    await cell('shared.notes create as owner: always').click()
    await page.getByRole('dialog').getByText('Always allowed').waitFor()
    await page.getByRole('button', { name: 'Close', exact: true }).click()
    await cell('shared.notes read as user: depends').click()
    await page.getByRole('dialog').getByText('authorId == auth.id').waitFor()
    await takeScreenshots(sheet, 'rules-matrix-cell')
    expect(await findBarriers(sheet)).toEqual([])
    expect(new URL(page.url()).searchParams.get('cell')).toBe('shared.notes:read:user')
    await page.getByRole('button', { name: 'Close', exact: true }).click()
    await cell('shared.notes delete as owner: always').click()
    await page.getByRole('link', { name: 'Try in the playground' }).click()
    await page.getByRole('heading', { name: /^(Allowed|Denied)/ }).waitFor()
    await page.getByRole('heading', { name: 'Allowed 200' }).waitFor()
    expect(await page.getByLabel('Record', { exact: true }).last().inputValue()).toBe('{"authorId":"owner"}')
    expectNoFaults(sheet)
  })

  test('the attack is explained with its commands, and none of it runs here', async () => {
    await sheet.open('/rules/attack', 'Rules')
    await sheet.page.getByText(`npx plinth rules attack --url ${server.url}`).waitFor()
    await takeScreenshots(sheet, 'rules-attack')
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  test('markup in values, claims, ids and addresses stays text', async () => {
    const { page } = sheet
    const answer = await answerTo({ id: 'markup', as: claims(payload, { [payload]: payload }) })
    expect(answer).toMatchObject({ title: 'Allowed 200' })
    expect(answer.clauses['read.or[0]']).toContain(payload.slice(0, 8))
    await page.getByText('The caller as rules see it').click()
    await answerTo({ id: payload, as: claims('ada') })
    await answerTo({ operation: 'create', row: JSON.stringify({ title: payload, authorId: payload }), as: claims('a') })
    await sheet.open(`/rules/matrix?search=${encodeURIComponent(payload)}&cell=${encodeURIComponent(payload)}`, 'Rules')
    await page.getByText('No table found').waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('without the scope to read a table, its values are hidden', async () => {
    const support = await openSignedIn(browser, server, { role: 'explainer' })
    const answer = await answerTo({ table: 'vault', id: 'gold', as: claims('ada', { word: 'sesame' }) }, support)
    expect(answer).toMatchObject({ title: 'Allowed 200', clauses: { read: 'hidden · secret hidden' } })
    await support.page.getByText('SQL and its plan').click()
    await support.page.getByText('which your role does not read').waitFor()
    expect(await support.page.locator('main').textContent()).not.toContain('Gold')
    expectNoFaults(support)
    await support.close()
  })

  test('a viewer has no such area, and sees why', async () => {
    const viewer = await openSignedIn(browser, server, { role: 'viewer' })
    await viewer.page.goto(`${server.url}/dashboard${pathOf({ id: 'draft' })}`)
    await viewer.page.getByText('Your role does not include Rules').waitFor()
    expect(await viewer.page.getByRole('link', { name: 'Rules' }).count()).toBe(0)
    expectNoFaults(viewer)
    await viewer.close()
  })
})
