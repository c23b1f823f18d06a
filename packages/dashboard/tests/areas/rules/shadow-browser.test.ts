/** Shadow runs of the area "Rules" in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../../scripts/build/dashboard.ts'
import { or } from '../../../../server/src/access/filter.ts'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../../server/tests/harness/server.ts'
import { adminUsers, unlimitedRates } from '../../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../../harness/browser.ts'
import { openSignedIn, type SignedIn } from '../../harness/signed-in.ts'

type Auth = { id: string } | null

const text = { type: 'string' } as const
const payload = '<img src=x onerror="alert(1)">'

const config = {
  rateLimits: unlimitedRates,
  databases: {
    shared: {
      tables: {
        posts: {
          schema: { title: text, authorId: text, status: text },
          access: {
            read: (auth: Auth) => (auth ? or({ authorId: auth.id }, { status: 'live' }) : { status: 'live' }),
            update: { before: (auth: Auth) => auth && { authorId: auth.id }, after: true },
          },
        },
      },
    },
    tenants: {
      instance: true,
      access: () => true,
      tables: { docs: { schema: { title: text }, access: { read: true } } },
    },
  },
} as const

describeInBrowser('Shadow runs in the dashboard', 'shadow runs in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  let mariesId = ''
  const base = '/api/db/shared/tables/posts'

  beforeAll(async () => {
    await buildDashboard()
    server = await startServer({ config })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
    const marie = { email: 'marie@example.com', password: 'a password of a user', displayName: 'Marie Curie' }
    mariesId = (await server.service.post(adminUsers, marie)).body.user.id
    const posts = Array.from({ length: 30 }, (_, at) => ({
      id: `post-${String(at).padStart(2, '0')}`,
      title: at === 29 ? payload : `Post ${at}`,
      authorId: at % 3 === 0 ? mariesId : 'omar',
      status: at % 2 === 0 ? 'live' : 'draft',
    }))
    expect((await server.service.post(`${base}/batch`, { inserts: posts })).status).toBe(200)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  const editor = (from = sheet) => from.page.getByRole('textbox', { name: 'Text of the rule' })
  const compare = (from = sheet) => from.page.getByRole('button', { name: 'Compare' }).click()
  const shadowPath = (params: Record<string, string>): string =>
    `/rules/shadow?${new URLSearchParams({ namespace: 'shared', table: 'posts', operation: 'read', ...params })}`

  async function edit(rule: string): Promise<void> {
    await editor().click()
    await sheet.page.keyboard.press('ControlOrMeta+a')
    await sheet.page.keyboard.insertText(rule)
  }

  test('[RULES-SHADOW-1] a rule is edited, and each caller has the records that it gains and loses, and why', async () => {
    const { page } = sheet
    const before = await server.dump(base)
    await sheet.open('/rules/shadow', 'Rules')
    await page.getByText('What would this rule change?').waitFor()
    await page.getByRole('combobox', { name: 'Table' }).click()
    await page.getByRole('option', { name: 'shared.posts' }).click()
    await page.getByText('databases.shared.tables.posts.access.read').waitFor()
    await page.getByRole('button', { name: 'Add caller' }).click()
    await page.getByRole('searchbox').fill('marie')
    await page.getByRole('button', { name: /Marie Curie/ }).click()
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    expect(new URL(page.url()).searchParams.get('callers')).toContain(`user:${mariesId}`)
    await page.getByRole('button', { name: 'Remove {"id":"sample-user"}' }).click()
    expect(await editor().textContent()).toContain('authorId')

    await compare()
    await page.getByText('No caller gains or loses a record.').waitFor()
    expect(await page.getByRole('heading', { name: 'Patch' }).count()).toBe(0)

    await edit(
      "(auth) => auth\n  ? and({ authorId: auth.id }, { status: 'live' })\n  : or({ status: 'live' }, { authorId: 'omar' })",
    )
    await page.keyboard.press('ControlOrMeta+Enter')
    await page.getByText('2 callers would see a difference.').waitFor()
    const anonymous = page.locator('.card', { hasText: 'Gains 10 records' })
    await anonymous.getByText('+10').waitFor()
    await anonymous.getByRole('link', { name: 'post-29' }).waitFor()
    const reason = anonymous.locator('li', { hasText: 'post-29' })
    await reason.getByText('status is "draft"').waitFor()
    await reason.getByText('authorId == "omar"').waitFor()
    const marie = page.locator('.card', { hasText: 'Loses 15 records' })
    await marie.getByText('−15').waitFor()
    const lines = page.getByRole('region', { name: 'Changed lines' })
    await lines.getByText('read: (auth) => auth', { exact: true }).waitFor()
    await takeScreenshots(sheet, 'rules-shadow', { height: 1180 })
    expect(await findBarriers(sheet)).toEqual([])
    expect(await server.dump(base)).toEqual(before)

    await page.getByRole('button', { name: 'Rule in force' }).click()
    await page.getByText('2 callers would see a difference.').waitFor({ state: 'detached' })
    expectNoFaults(sheet)
  })

  test('[RULES-SHADOW-6] errors of the text are at their place', async () => {
    const { page } = sheet
    sheet.allow(/400 POST .*\/rules\/shadow|status of 400/)
    await sheet.open(shadowPath({ callers: JSON.stringify(['claims:{"id":"ada"}']) }), 'Rules')
    await edit('(auth) => {\n  return }}\n')
    await compare()
    await page.getByRole('list', { name: 'Problems of the rule' }).getByText('Line 2').first().waitFor()
    await page.locator('.cm-lintRange-error').first().waitFor()
    await takeScreenshots(sheet, 'rules-shadow-problem')
    expect(await findBarriers(sheet)).toEqual([])
    await edit(`(auth) => or({ title: ${JSON.stringify(payload)} },\n  auth.missing.part)`)
    await compare()
    await page.getByText('The edited rule fails for this caller, and so denies').waitFor()
    await page.getByRole('list', { name: 'Problems of the rule' }).getByText('Line 2').waitFor()
    await edit(`() => { throw new Error(${JSON.stringify(payload)}) }`)
    await compare()
    await page.getByText(payload).first().waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('a rule of an instance needs its name, and an update rule names its place', async () => {
    const { page } = sheet
    await sheet.open(shadowPath({ namespace: 'tenants', table: 'docs' }), 'Rules')
    await page.getByText('databases.tenants.tables.docs.access.read').waitFor()
    expect(await page.getByRole('button', { name: 'Compare' }).isDisabled()).toBe(true)
    await page.getByLabel('Instance').fill('acme')
    await compare()
    await page.getByText('Compared over the last 0 records').waitFor()
    await sheet.open(shadowPath({ operation: 'update' }), 'Rules')
    await page.getByText('databases.shared.tables.posts.access.update.before').waitFor()
    await page.getByRole('radio', { name: 'update.after' }).check()
    await page.getByText('databases.shared.tables.posts.access.update.after', { exact: true }).waitFor()
    await edit("(auth) => ({ status: 'live' })")
    await compare()
    await page.locator('.card', { hasText: 'Loses 15 records' }).first().waitFor()
    await page.getByRole('region', { name: 'Changed lines' }).getByText('after: (auth)', { exact: false }).waitFor()
    await takeScreenshots(sheet, 'rules-shadow-update-after')
    expectNoFaults(sheet)
  })

  test('[RULES-SHADOW-4] in release mode the page says why it is not there', async () => {
    const release = await startServer({ config: { ...config, dashboard: { requireMfa: false } }, mode: 'release' })
    const owner = await openSignedIn(browser, release)
    try {
      await owner.open(shadowPath({}), 'Rules')
      await owner.page.getByText('Not in release mode').waitFor()
      await takeScreenshots(owner, 'rules-shadow-release')
      expect(await findBarriers(owner)).toEqual([])
      expectNoFaults(owner)
    } finally {
      await owner.close()
      await release.close()
    }
  })
})
