/** The recent log lines of functions: over HTTP, and by `plinth functions logs`. */
import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openFunctionProject } from '../harness/functions.ts'
import { openCommandLine } from '../harness/processes/command-line.ts'
import { followText } from '../harness/processes/follow-text.ts'
import { describeServer, rootKey } from '../harness/server.ts'

const project = openFunctionProject(`
secret('CRM_KEY')
export const talk = rpc({ caller: 'anyone' }, ({ level, message, ...fields }, ctx) => ctx.log[level](message, fields))
export const leak = rpc({ caller: 'anyone' }, (_, ctx) => ctx.log.info('key ' + ctx.secrets.CRM_KEY, { key: ctx.secrets.CRM_KEY }))
export const fail = rpc({ caller: 'anyone' }, () => { throw new Error('broken ' + 1) })
export const refuse = rpc({ caller: 'anyone' }, () => { throw new HttpError(409, 'refused') })
`)
afterAll(() => project.remove())

const settings = { projectFolder: project.folder, environment: { CRM_KEY: 'a-secret-value' } }
const command = openCommandLine([process.execPath, join(import.meta.dir, '../../src/main.ts')], 'SIGKILL')

describeServer('log lines of functions', { config: {}, settings }, (server) => {
  const call = (name: string, input: unknown = null) => server.anonymous.post(`/api/fn/${name}`, input)
  const read = async (query = '') => (await server.service.get(`/api/functions/logs${query}`)).body

  test('[FN-LOG-1] lines and failures of functions are listed by function and least level', async () => {
    await call('talk', { level: 'debug', message: 'quiet' })
    await call('talk', { level: 'warn', message: 'loud', left: 2 })
    await call('fail')
    await call('refuse')
    const { items } = await read()
    expect(items.map((item: { message: string }) => item.message)).toEqual(['quiet', 'loud', 'broken 1'])
    expect(items[1]).toMatchObject({ level: 'warn', function: 'talk', data: { left: 2 }, location: null })
    expect(items[2]).toMatchObject({ level: 'error', function: 'fail', location: 'functions/index.ts:7' })
    expect((await read('?function=fail')).items).toHaveLength(1)
    expect((await read('?level=warn')).items).toHaveLength(2)
    expect((await server.service.get('/api/functions/logs?level=loud')).status).toBe(400)
    expect((await server.as('u1').get('/api/functions/logs')).status).toBe(403)
  })

  test('[FN-LOG-2] a cursor continues after the lines that were read', async () => {
    const { cursor } = await read()
    await call('talk', { level: 'info', message: 'next' })
    const page = await read(`?cursor=${cursor}`)
    expect(page).toMatchObject({ items: [{ message: 'next' }], gap: false })
    expect((await read(`?cursor=${page.cursor}`)).items).toEqual([])
    expect((await server.service.get(`/api/functions/logs?cursor=${cursor}x`)).status).toBe(400)
  })

  test('[FN-LOG-5] the lines of one request are listed', async () => {
    const { headers } = await call('talk', { level: 'info', message: 'mine' })
    await call('talk', { level: 'info', message: 'of another request' })
    const requestId = headers.get('x-request-id')
    expect((await read(`?requestId=${requestId}`)).items).toMatchObject([{ message: 'mine', requestId }])
    expect((await read('?requestId=none')).items).toEqual([])
  })

  test('[FN-SECRET-5] values of secrets are replaced', async () => {
    await call('leak')
    const { items } = await read('?function=leak')
    expect(items).toMatchObject([{ message: 'key [secret CRM_KEY]', data: { key: '[secret CRM_KEY]' } }])
  })

  test('[FN-LOG-4] `plinth functions logs` shows lines, and with --follow those that come', async () => {
    await call('talk', { level: 'info', message: 'before' })
    writeFileSync(join(command.folder, 'plinth.config.ts'), 'export default {}')
    const args = ['functions', 'logs', 'talk', '--url', server.url]
    const key = { PLINTH_SERVICE_KEY: rootKey, PLINTH_SECRET: 'a-secret-of-a-server-0123456789abcdef' }
    const once = await command.run(args, key)
    expect({ code: once.code, error: once.error }).toEqual({ code: 0, error: '' })
    expect(once.out).toMatch(/Z {2}info {2}talk {2}before/)
    const following = command.spawn([...args, '--follow', '--level', 'info'], key)
    const shown = followText(following.stdout)
    await shown.until('before')
    await call('talk', { level: 'info', message: 'after', n: 1 })
    await shown.until('info  talk  after  {"n":1}')
    await command.end()
  })
})
