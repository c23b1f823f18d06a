/** The area "Live" in a real browser, against rooms of a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../scripts/build/dashboard.ts'
import type { Room, RoomPlayer } from '../../../server/src/config/define.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { watch } from '../../../server/tests/harness/records/live.ts'
import { join } from '../../../server/tests/harness/rooms/rooms.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { unlimitedRates } from '../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

const payload = '<img src=x onerror="alert(1)">'

const databases = {
  shared: { tables: { notes: { schema: { title: { type: 'string' } }, access: { read: true } } } },
} as const

const rooms = {
  game: {
    access: { join: true },
    messageRate: 1000,
    actions: {
      score(room: Room, player: RoomPlayer, points: unknown) {
        if (typeof points !== 'number') throw new Error(`points must be a number, not ${points}`)
        room.shared.scores ??= {}
        room.shared.scores[player.id] = (room.shared.scores[player.id] ?? 0) + points
        room.shared.round ??= 1
        room.server.last = player.id
        player.state.points = points
      },
      mark(room: Room, player: RoomPlayer, text: string) {
        room.shared[text] = { nested: [text] }
        player.state.note = text
      },
    },
  },
  quiz: { access: { join: true }, actions: {} },
}

describeInBrowser('Live in the dashboard', 'rooms in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    await buildDashboard()
    server = await startServer({ config: { databases, rooms, rateLimits: unlimitedRates } })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  test('without rooms the page says how a room begins', async () => {
    await sheet.open('/live', 'Live')
    await sheet.page.getByText('No room is in memory').waitFor()
    await takeScreenshots(sheet, 'live-empty')
    expect(await findBarriers(sheet)).toEqual([])
    await sheet.open('/live/room?namespace=game&id=nowhere', 'nowhere')
    await sheet.page.getByText('This room is not in memory').waitFor()
    expect(sheet.takeFaults().every((fault) => /404/.test(fault))).toBe(true)
  })

  test('an action is sent in the name of a member, and named in the log', async () => {
    const { page } = sheet
    const ann = await join(server, 'ann', { id: 'acted' })
    await sheet.open('/live/room?namespace=game&id=acted', 'acted')
    await page.getByRole('button', { name: 'Send as ann' }).click()
    const payloadEditor = page.getByRole('textbox', { name: 'Payload' })
    await payloadEditor.fill('7')
    await page.getByRole('button', { name: 'Send action' }).click()
    await page.getByText('The action ran').waitFor()
    await ann.nextOf('shared_delta')
    await payloadEditor.fill('"many"')
    await page.getByRole('button', { name: 'Send action' }).click()
    await page.getByText('ACTION_FAILED: points must be a number, not many').waitFor()
    await takeScreenshots(sheet, 'send-as-player')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'Close' }).last().click()
    await page.getByText(`sent by admin:${sheet.administrator.id}`).first().waitFor()
    await takeScreenshots(sheet, 'room-acted')
    await ann.close()
    expectNoFaults(sheet)
  })

  test('a change lights up in the tree of an open room, and a member is kicked', async () => {
    const { page } = sheet
    const id = '100% of #1 / a?b&c'
    const [ann, bob] = [await join(server, 'ann', { id }), await join(server, 'bob', { id })]
    const other = await join(server, 'eve', { namespace: 'quiz', id: 'quiet' })
    await ann.act('score', 3)
    await sheet.open('/live', 'Live')
    const first = page.getByRole('table', { name: 'Rooms' }).getByRole('row').nth(1)
    await first.getByText(id).waitFor()
    await takeScreenshots(sheet, 'live')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('combobox', { name: 'Namespace' }).click()
    await page.getByRole('option', { name: 'quiz' }).click()
    await page.getByRole('button', { name: /quiet/ }).waitFor()
    expect(await page.getByText(id).count()).toBe(0)
    expect(new URL(page.url()).searchParams.get('namespace')).toBe('quiz')
    await page.goBack()
    await page.getByRole('button', { name: /100% of/ }).click()
    await page.getByRole('heading', { level: 1, name: id }).waitFor()

    const shared = page.getByRole('region', { name: 'Shared state' })
    const score = shared.locator('[data-pointer="/scores/ann"]')
    expect(await score.getByText('3', { exact: true }).count()).toBe(1)
    expect(await page.locator('.json-flash').count()).toBe(0)
    await ann.act('score', 4)
    await score.getByText('7', { exact: true }).waitFor()
    expect(await score.locator('.json-flash').count()).toBe(1)
    expect(await shared.locator('[data-pointer="/round"] .json-flash').count()).toBe(0)
    await bob.act('score', 'many')
    await page.getByText('points must be a number, not many').waitFor()
    await takeScreenshots(sheet, 'live-room', { fullPage: true })
    expect(await findBarriers(sheet)).toEqual([])
    // The URL alone leads to the room.
    await page.reload()
    await page.getByRole('heading', { level: 1, name: id }).waitFor()

    await page.getByRole('button', { name: 'Kick bob' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Kick' }).click()
    await page.getByText('Member removed').waitFor()
    await page.getByRole('button', { name: 'Kick bob' }).waitFor({ state: 'detached' })
    expect((await bob.closed).code).toBeGreaterThan(0)
    expectNoFaults(sheet)
    for (const player of [ann, bob, other]) await player.close()
  })

  test('connections show the nodes and the channels with subscribers', async () => {
    const { page } = sheet
    await sheet.open('/live/connections', 'Live')
    await page.getByRole('table', { name: 'Nodes' }).waitFor()
    await page.getByText('No subscriptions yet').waitFor()
    await takeScreenshots(sheet, 'live-connections')
    expect(await findBarriers(sheet)).toEqual([])
    const socket = await watch(server.url, { channel: 'dblive:shared:notes' })
    const channels = page.getByRole('table', { name: 'Channels' })
    await channels
      .getByRole('row', { name: /dblive:shared:notes/ })
      .getByText('1', { exact: true })
      .waitFor()
    expectNoFaults(sheet)
    await socket.close()
  })

  test('markup in ids, states, payloads and errors stays text', async () => {
    const { page } = sheet
    const player = await join(server, payload, { id: payload })
    await player.act('mark', payload)
    await player.act('score', payload)
    await sheet.open('/live', 'Live')
    await page.getByRole('button', { name: payload }).click()
    await page.getByRole('heading', { level: 1, name: payload }).waitFor()
    await page.getByText(`points must be a number, not ${payload}`).waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expectNoFaults(sheet)
    await player.close()
  })

  test('a viewer sees rooms and no action', async () => {
    const player = await join(server, 'seen', { id: 'seen' })
    const viewer = await openSignedIn(browser, server, { role: 'viewer' })
    await viewer.open('/live/room?namespace=game&id=seen', 'seen')
    await viewer.page.getByRole('link', { name: 'seen', exact: true }).waitFor()
    for (const name of [/Kick/, /Hibernate/]) expect(await viewer.page.getByRole('button', { name }).count()).toBe(0)
    expectNoFaults(viewer)
    await viewer.close()
    await player.close()
  })
})
