/** The area "Code" in a real browser, against functions of a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../scripts/build/dashboard.ts'
import { openFunctionProject } from '../../../server/tests/harness/functions.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { unlimitedRates } from '../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

const payload = '<img src=x onerror="alert(1)">'

const project = openFunctionProject(`
export const greet = rpc({ caller: 'anyone' }, (name, ctx) => {
  ctx.log.info('greeted ' + name, { name })
  if (name === 'faulty') throw new Error('a name is needed')
  return 'Hello ' + name
})
export const welcome = queue('mails', { retries: 0 }, async (input, ctx) => {
  ctx.log.info('welcoming ' + input.to)
  const { notes } = ctx.service.db('shared')
  if ((await notes.list({ filter: [['title', '==', 'repaired']] })).items.length === 0) throw new Error('no route to ' + input.to)
})
export const nightly = schedule('0 3 * * *', { tz: 'Europe/Berlin' }, () => {})
export const crm = webhook('shared.notes', { url: 'https://127.0.0.1/hook', secret: '${`whsec_${Buffer.alloc(24, 7).toString('base64')}`}', where: { title: 'sent' } })
`)

const config = {
  databases: { shared: { tables: { notes: { schema: { title: { type: 'string' } } } } } },
  rateLimits: unlimitedRates,
} as const

describeInBrowser('Code in the dashboard', 'functions in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    await buildDashboard()
    server = await startServer({ config, settings: { projectFolder: project.folder } })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
    project.remove()
  })

  async function enqueue(to: string): Promise<string> {
    const added = await server.service.post('/api/functions/jobs', { queue: 'mails', input: { to, tags: [payload] } })
    expect(added.status).toBe(201)
    await server.finishDue()
    return added.body.jobId
  }
  const jobOf = async (id: string) => (await server.service.get(`/api/functions/jobs/${id}`)).body

  test('functions show their calls and errors, and lead to their lines', async () => {
    const { page } = sheet
    await server.anonymous.post('/api/fn/greet', 'Ann')
    await server.anonymous.post('/api/fn/greet', 'faulty')
    await sheet.open('/code', 'Code')
    const row = page.getByRole('table', { name: 'Functions' }).getByRole('row', { name: /greet/ })
    await row.getByText('failing').waitFor()
    await row.getByText('a name is needed').waitFor()
    expect(await row.getByText(/functions\/index\.ts:\d+/).count()).toBe(2)
    await page.getByRole('table', { name: 'Processes' }).waitFor()
    await takeScreenshots(sheet, 'code')
    expect(await findBarriers(sheet)).toEqual([])
    await row.getByRole('button', { name: /greet/ }).click()
    await page.getByText('greeted faulty').waitFor()
    await page.getByText('greeted Ann').waitFor()
    await takeScreenshots(sheet, 'code-logs')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('listitem').filter({ hasText: 'greeted Ann' }).getByRole('button').click()
    await page.getByText('greeted faulty').waitFor({ state: 'detached' })
    await page.reload()
    await page.getByText('greeted Ann').waitFor()
    expect(await page.getByText('greeted faulty').count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('a dead letter is read and retried, then all of them', async () => {
    const { page } = sheet
    const [first, second, third] = [await enqueue('one@example.com'), await enqueue('two'), await enqueue('three')]
    await sheet.open('/code/jobs', 'Code')
    await page.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'mails' }).click()
    await page.getByRole('combobox', { name: 'Status' }).click()
    await page.getByRole('option', { name: 'dead' }).click()
    await page.getByRole('table', { name: 'Jobs' }).getByText('no route to one@example.com').waitFor()
    expect(new URL(page.url()).search).toBe('?queue=mails&status=dead')
    await takeScreenshots(sheet, 'code-jobs')
    expect(await findBarriers(sheet)).toEqual([])

    await page.getByRole('button', { name: new RegExp(first) }).click()
    await page.getByRole('heading', { level: 1, name: 'welcome' }).waitFor()
    await page.getByText('no route to one@example.com').first().waitFor()
    await page.getByText('welcoming one@example.com').waitFor()
    await takeScreenshots(sheet, 'code-job', { fullPage: true })
    expect(await findBarriers(sheet)).toEqual([])
    await server.service.post('/api/db/shared/tables/notes', { title: 'repaired' })
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('The job runs when a node has room').waitFor()
    await server.finishDue()
    expect(await jobOf(first)).toMatchObject({ status: 'done' })

    await sheet.open('/code/dead', 'Code')
    await page.getByText('no route to three').waitFor()
    await takeScreenshots(sheet, 'code-dead')
    await page.getByRole('button', { name: 'Retry all…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Retry all' }).click()
    await page.getByText('2 jobs run again').waitFor()
    await server.finishDue()
    for (const id of [second, third]) expect(await jobOf(id)).toMatchObject({ status: 'done' })
    await page.getByText('No dead letters').waitFor()
    expectNoFaults(sheet)
  })

  test('a queue is paused, a waiting job canceled, and the queue resumed', async () => {
    const { page } = sheet
    await sheet.open('/code/jobs', 'Code')
    await page.getByRole('button', { name: 'Pause mails' }).click()
    await page.getByRole('button', { name: 'Resume mails' }).waitFor()
    const id = await enqueue('later')
    await sheet.open(`/code/job?id=${id}`, 'welcome')
    await page.getByRole('button', { name: 'Cancel job…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the job' }).click()
    await page.getByText('Job canceled').waitFor()
    expect(await jobOf(id)).toMatchObject({ status: 'dead' })
    await sheet.open('/code/jobs', 'Code')
    await page.getByRole('button', { name: 'Resume mails' }).click()
    await page.getByRole('button', { name: 'Pause mails' }).waitFor()
    const { items } = (await server.service.get('/api/functions/queues')).body
    expect(items.find(({ name }: { name: string }) => name === 'mails').pausedAt).toBeNull()
    expectNoFaults(sheet)
  })

  test('schedules and webhooks show what comes and what was sent', async () => {
    const { page } = sheet
    await sheet.open('/code/schedules', 'Code')
    await page.getByText('0 3 * * *').waitFor()
    await page.getByText('Europe/Berlin').waitFor()
    await takeScreenshots(sheet, 'code-schedules')
    expect(await findBarriers(sheet)).toEqual([])
    await sheet.open('/code/webhooks', 'Code')
    await page.getByRole('table', { name: 'Webhooks' }).getByRole('link', { name: 'crm' }).waitFor()
    await page.getByText('Nothing sent yet').waitFor()
    // The address is not public, so each attempt fails before a connection.
    await server.service.post('/api/db/shared/tables/notes', { title: 'sent' })
    const delivery = page.getByRole('table', { name: 'Deliveries' }).getByRole('button', { name: /crm/ })
    await delivery.waitFor()
    await takeScreenshots(sheet, 'code-webhooks')
    expect(await findBarriers(sheet)).toEqual([])
    await delivery.click()
    await page.getByRole('heading', { level: 1, name: 'crm' }).waitFor()
    await page.getByRole('heading', { name: 'Error of the last failed attempt' }).waitFor()
    await takeScreenshots(sheet, 'code-delivery')
    expectNoFaults(sheet)
  })

  test('markup in lines, inputs and errors stays text', async () => {
    const { page } = sheet
    await server.anonymous.post('/api/fn/greet', payload)
    const id = await enqueue(payload)
    await sheet.open('/code/logs', 'Code')
    await page.getByText(`greeted ${payload}`).waitFor()
    await page.getByText(`welcoming ${payload}`).waitFor()
    await sheet.open(`/code/job?id=${id}`, 'welcome')
    await page.getByText(JSON.stringify(payload)).first().waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('a viewer sees jobs and no action', async () => {
    const id = await enqueue('seen')
    const viewer = await openSignedIn(browser, server, { role: 'viewer' })
    await viewer.open(`/code/job?id=${id}`, 'welcome')
    await viewer.page.getByText('welcoming seen').waitFor()
    for (const path of ['/code/jobs', '/code/dead']) {
      await viewer.open(path, 'Code')
      await viewer.page.getByRole('table').first().waitFor()
      for (const name of [/Retry/, /Pause/, /Resume/, /Cancel/])
        expect(await viewer.page.getByRole('button', { name }).count()).toBe(0)
    }
    expectNoFaults(viewer)
    await viewer.close()
  })

  test('without functions each view says how to begin', async () => {
    const empty = await startServer({ config: {} })
    const visitor = await openSignedIn(browser, empty)
    for (const [path, title] of [
      ['/code', 'No functions yet'],
      ['/code/schedules', 'No schedules yet'],
      ['/code/dead', 'No dead letters'],
      ['/code/webhooks', 'No webhooks yet'],
      ['/code/logs', 'No lines'],
    ] as const) {
      await visitor.open(path, 'Code')
      await visitor.page.getByRole('heading', { name: title }).waitFor()
      expect(await findBarriers(visitor)).toEqual([])
    }
    await visitor.open('/code', 'Code')
    await visitor.page.getByRole('heading', { name: 'No functions yet' }).waitFor()
    await takeScreenshots(visitor, 'code-empty')
    expectNoFaults(visitor)
    await visitor.close()
    await empty.close()
  })
})
